// Random shapes through k-max pooling, every array exactly as large as promised, for sanitizers and valgrind.
// `make fuzz` runs it with many seeds. By hand:
//
//   g++ -std=c++17 -g -O1 -mavx512f -fsanitize=address,undefined tests/kernels/sanitize_k_max.cpp -o sanitize && ./sanitize
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/k_max.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); };
    for (int round = 0; round < 200; round++) {
        const int N = number(1, 4), P = number(1, 70), C = number(1, 40);
        std::vector<float> x(size_t(N) * P * C);
        for (float &value : x) value = round % 5 ? float(number(-9, 9)) : (number(0, 3) ? float(number(-9, 9)) : NAN);
        std::vector<int64_t> lengths(N), counts(N);
        int64_t most = 0;
        for (int n = 0; n < N; n++) {
            lengths[n] = number(1, P), counts[n] = number(1, int(lengths[n]));
            most = counts[n] > most ? counts[n] : most;
        }
        std::vector<int64_t> places(size_t(N) * most * C);
        if (matchloom_k_max(x.data(), N, P, C, most, lengths.data(), counts.data(), places.data())) return 1;
        for (int64_t place : places)
            if (place < 0 || place >= P) return 2;
    }
    puts("no error");
}
