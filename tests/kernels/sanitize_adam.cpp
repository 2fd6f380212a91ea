// Random steps of Adam, every array exactly as large as promised. See sanitize.cpp.
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/adam.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(draw); };
    for (int round = 0; round < 300; round++) {
        const int64_t rows = number(1, 60), size = number(1, 70);
        std::vector<int64_t> at;
        for (int64_t row = 0; row < rows; row++)
            if (round % 3 == 0 ? row % 7 == round % 7 : number(0, 1)) at.push_back(row);
        at.shrink_to_fit();
        std::vector<float> x(rows * size), m(rows * size), v(rows * size), gradient(at.size() * size);
        for (float &one : x) one = std::normal_distribution<float>(0, 1)(draw);
        const float settings[7] = {0.1f, 0.999f, 0.001f, 0.01f, 0.5f, 1e-8f, round % 2 ? 1.0f : 0.9999f};
        for (int step = 0; step < 3; step++) {
            for (float &one : gradient) one = std::normal_distribution<float>(0, step == 1 ? 1e-30f : 1)(draw);
            matchloom_adam(x.data(), m.data(), v.data(), rows, size, at.data(), gradient.data(), int64_t(at.size()), settings);
        }
        for (float one : x)
            if (!(one - one == 0)) return 2;
    }
    puts("no error");
}
