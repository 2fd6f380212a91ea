// Random shapes through the cosines, every array exactly as large as promised, for sanitizers and valgrind.
// `make fuzz` runs it with many seeds. By hand:
//
//   g++ -std=c++17 -g -O1 -mavx2 -fsanitize=address,undefined tests/kernels/sanitize_int8_cosines.cpp -o sanitize && ./sanitize
#include <cstdio>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/int8_cosines.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); };
    for (int round = 0; round < 200; round++) {
        const int L = number(0, 40), N = number(0, 4), R = number(0, 30), D = number(0, 70);
        std::vector<int8_t> query(size_t(L) * (D + DIGITS)), texts(size_t(N) * R * (D + DIGITS));
        for (auto *some : {&query, &texts})
            for (int8_t &value : *some) value = int8_t(number(-127, 127));
        std::vector<double> found(size_t(N) * L * R);
        if (matchloom_int8_cosines(query.data(), L, texts.data(), N, R, D, found.data())) return 1;
    }
    puts("no error");
}
