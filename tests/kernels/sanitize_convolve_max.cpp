// Random shapes through convolutions of which the largest of each cell is kept, every array exactly as large as promised.
// See sanitize.cpp.
#include <cstdio>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/convolve_max.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int64_t(std::uniform_int_distribution<>(low, high)(draw)); };
    const auto numbers = [&](size_t count) {
        std::vector<float> x(count);
        for (float &one : x) one = std::normal_distribution<float>(0, 0.5f)(draw);
        return x;
    };
    const auto integers = [&](size_t count, int low, int high) {
        std::vector<int64_t> x(count);
        for (int64_t &one : x) one = number(low, high);
        return x;
    };
    for (int round = 0; round < 60; round++) {
        const int64_t B = number(1, 5), C = number(1, 4), h = number(1, 40), w = number(1, 70), O = number(1, 20);
        const int64_t kh = number(1, 6), kw = number(1, round % 5 ? 6 : 20), window = round % 2 ? number(1, 3) : 0;
        const auto x = numbers(B * C * h * w), weights = numbers(O * C * kh * kw), bias = numbers(O);
        const auto heights = integers(B, 1, int(h)), widths = integers(B, 1, int(w));
        ConvolveMaxTask task{};
        task.end = B, task.channels = C, task.height = h, task.width = w, task.outputs = O;
        task.map_step = C * h * w, task.channel_step = round % 3 ? h * w : w, task.row_step = round % 3 ? w : C * w;
        task.kernel_height = kh, task.kernel_width = kw, task.above = number(0, int(kh - 1));
        task.before = number(0, int(kw - 1)), task.window = window;
        task.rows = window ? (h + window - 1) / window : number(1, 12);
        task.columns = window ? (w + window - 1) / window : number(1, 12);
        task.heights = heights.data(), task.widths = widths.data();
        task.x = x.data(), task.w = weights.data(), task.bias = bias.data();
        const int64_t cells = B * O * task.rows * task.columns;
        std::vector<float> out(cells), again(cells), x_gradient(B * C * h * w), w_gradient(weights.size()), b_gradient(O);
        std::vector<int32_t> places(cells);
        task.out = again.data();
        if (matchloom_convolve_max_forward(&task)) return 1;
        task.out = out.data(), task.places = places.data();
        if (matchloom_convolve_max_forward(&task)) return 1;
        if (memcmp(out.data(), again.data(), cells * sizeof(float))) return 2;
        const auto up = numbers(cells);
        task.out_gradient = up.data(), task.w_gradient = w_gradient.data(), task.bias_gradient = b_gradient.data();
        task.x_gradient = round % 4 ? x_gradient.data() : nullptr;
        if (matchloom_convolve_max_backward(&task)) return 1;
    }
    puts("no error");
}
