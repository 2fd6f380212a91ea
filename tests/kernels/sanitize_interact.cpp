// Random shapes through interactions, products, convolutions and matches, every array exactly as large as promised.
// See sanitize.cpp.
#include <cstdio>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/convolve.cpp"
#include "../../src/matchloom/kernels/interact.cpp"
#include "../../src/matchloom/kernels/matches.cpp"

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
    for (int round = 0; round < 30; round++) {
        const int64_t N = number(1, 3), M = number(1, 4), L = number(1, 90), R = number(1, 90), E = number(1, 40);
        const int64_t B = number(1, 6), k = number(1, 6), kernels = number(1, 4), C = round % 3 ? 1 : number(1, 4);
        auto left = numbers(N * L * E), right = numbers(M * R * E), form = numbers((E + 1) * C * (E + 1));
        auto left_rows = integers(B, 0, int(round % 2 ? 0 : N - 1)), right_rows = integers(B, 0, int(M - 1));
        auto left_lengths = integers(N, 1, int(L)), right_lengths = integers(M, 1, int(R));
        auto mu = numbers(kernels), scale = numbers(kernels);
        std::vector<float> grid(B * L * C * R), values(B * C * k), sums(B * kernels * L), up(B * kernels * L), cells(B * L * R);
        std::vector<int64_t> places(B * C * k);
        MeetTask task{};
        task.size = E, task.channels = C, task.left_width = L, task.right_width = R, task.end = B;
        task.left_rows = left_rows.data(), task.right_rows = right_rows.data();
        task.left_lengths = left_lengths.data(), task.right_lengths = right_lengths.data();
        task.left = left.data(), task.right = right.data(), task.form = round % 3 ? nullptr : form.data();
        task.relu = round % 2, task.k = k, task.values = values.data(), task.places = places.data();
        if (matchloom_meet(&task)) return 1;
        auto values_up = numbers(B * C * k);
        std::vector<float> of_left(left.size()), of_right(right.size());
        std::vector<float> of_form(task.form ? C * (E + 1) * matchloom_form_step(E) : 0);
        MeetTask back = task;
        back.values_gradient = values_up.data(), back.left_gradient = of_left.data();
        back.right_gradient = round % 5 ? of_right.data() : nullptr;
        back.form_gradient = task.form ? of_form.data() : nullptr;
        if (matchloom_meet_back(&back)) return 1;
        task.k = 0, task.grid = grid.data();
        if (matchloom_meet(&task)) return 1;
        for (int64_t b = 0; b < B; b++)
            for (int64_t c = 0; c < C; c++)
                for (int64_t n = 0; n < k; n++) {
                    const int64_t at = (b * C + c) * k + n, place = places[at];
                    if (place < 0) continue;
                    if (grid[((b * L + place / R) * C + c) * R + place % R] != values[at]) return 2;
                }
        if (C == 1) {
            task.grid = nullptr, task.kernels = kernels, task.mu = mu.data(), task.scale = scale.data();
            task.sums = sums.data();
            if (matchloom_meet(&task)) return 1;
            task.sums_gradient = up.data(), task.cells_gradient = cells.data();
            if (matchloom_meet(&task)) return 1;
        }
        std::vector<float> out(N * L * C * (E + 1)), unit(left.size());
        void *packed = nullptr;
        if (posix_memalign(&packed, 64, matchloom_packed(E, C * (E + 1)) * sizeof(float))) return 1;
        matchloom_pack(form.data(), E, C * (E + 1), C * (E + 1), 1, static_cast<float *>(packed));
        matchloom_product(left.data(), N * L, E, static_cast<float *>(packed), C * (E + 1),
                          round % 2 ? form.data() : nullptr, out.data());
        free(packed);
        matchloom_normalize(left.data(), N * L, E, 1e-12f, unit.data());
        matchloom_normalize_back(left.data(), unit.data(), N * L, E, 1e-12f, unit.data());
        matchloom_tanh(left.data(), int64_t(left.size()), unit.data());

        const int64_t h = number(1, 9), w = number(1, 9), in = number(1, 20), maps = number(1, 40), side = number(1, 4);
        auto x = numbers(B * h * w * in), weights = numbers(side * side * in * maps), bias = numbers(maps);
        auto heights = integers(B, 0, int(h)), widths = integers(B, 0, int(w));
        std::vector<float> made(B * h * w * maps);
        if (matchloom_convolve(x.data(), B, h, w, in, heights.data(), widths.data(), weights.data(), bias.data(), side, side,
                               number(0, int(side - 1)), number(0, int(side - 1)), maps, made.data()))
            return 1;

        auto keys = integers(N * 3 * L, 1, 9), others = integers(M * 3 * R, 1, 9);
        std::vector<double> idf(N * 3 * L, 0.5), best(B * 3 * k), totals(B * 3 * 2);
        matchloom_matches(keys.data(), idf.data(), others.data(), 3, L, R, left_rows.data(), right_rows.data(),
                          left_lengths.data(), right_lengths.data(), B, k, best.data(), totals.data());
    }
    puts("no error");
}
