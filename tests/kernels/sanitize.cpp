// Random shapes through the kernel, every array exactly as large as promised, for sanitizers and valgrind.
// `make fuzz` runs it with many seeds. By hand:
//
//   g++ -std=c++17 -g -O1 -mavx512f -mfma -fsanitize=address,undefined tests/kernels/sanitize.cpp -o sanitize && ./sanitize
//   g++ -std=c++17 -g -O1 -mavx2 -mfma tests/kernels/sanitize.cpp -o sanitize && valgrind --error-exitcode=1 ./sanitize
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "../../src/matchloom/kernels/spatial_gru.cpp"

template <class T>
using Array = std::unique_ptr<T, void (*)(void *)>;

template <class T>
Array<T> make(size_t count) {  // aligned as torch aligns, and not one byte more
    void *place = nullptr;
    if (posix_memalign(&place, 64, count * sizeof(T) + (count == 0))) abort();
    return {static_cast<T *>(place), free};
}

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); };
    const auto fill = [&](float *x, size_t count) {
        for (size_t k = 0; k < count; k++) x[k] = std::normal_distribution<float>(0, 0.5f)(draw);
    };
    for (int round = 0; round < 40; round++) {
        const int d = number(1, 12), c = number(1, 12), L = number(1, 8), R = number(1, 8), q = 3 * d + c;
        const int B = number(1, 2 * WIDTH + 3), count = number(1, B < 2 * WIDTH ? B : 2 * WIDTH);
        auto m = make<int64_t>(B), n = make<int64_t>(B), pairs = make<int64_t>(count);
        int M = 0, N = 0;
        for (int b = 0; b < B; b++) m.get()[b] = number(1, L), n.get()[b] = number(1, R);
        for (int b = 0; b < count; b++) {
            pairs.get()[b] = B - 1 - b;
            M = std::max(M, int(m.get()[B - 1 - b])), N = std::max(N, int(n.get()[B - 1 - b]));
        }
        const size_t s_size = size_t(B) * c * L * R, weights = 8 * size_t(d) * (q + 1);
        auto s = make<float>(s_size), ds = make<float>(s_size), gradient = make<float>(weights);
        auto gates = make<float>(7 * d * q), gates_bias = make<float>(7 * d);
        auto candidate = make<float>(d * q), candidate_bias = make<float>(d);
        auto ends = make<float>(B * d), again = make<float>(B * d), dends = make<float>(B * d);
        auto h = make<float>(size_t(M + 1) * (N + 1) * d * matchloom_lanes(count));
        fill(s.get(), s_size), fill(gates.get(), 7 * d * q), fill(gates_bias.get(), 7 * d);
        fill(candidate.get(), d * q), fill(candidate_bias.get(), d), fill(dends.get(), B * d);
        memset(ds.get(), 0, s_size * sizeof(float));
        const bool rows_first = round % 4 < 2;  // [pair][row][channel][column], or channels first
        Task task{c, int64_t(c) * L * R, rows_first ? R : L * R, rows_first ? c * R : R, d, round % 2, count, pairs.get(), m.get(), n.get(), s.get(), gates.get(), gates_bias.get(),
                  candidate.get(), candidate_bias.get(), nullptr, again.get(), dends.get(),
                  round % 3 ? ds.get() : nullptr, gradient.get()};
        if (matchloom_forward(&task)) return 1;
        task.h = h.get(), task.ends = ends.get();
        if (matchloom_forward(&task) || matchloom_backward(&task)) return 1;
        double sum = 0;
        for (int b = 0; b < count; b++)
            for (int k = 0; k < d; k++) {
                const int64_t at = pairs.get()[b] * d + k;
                if (!(std::fabs(ends.get()[at] - again.get()[at]) < 1e-6)) return 2;
            }
        for (size_t k = 0; k < weights; k++) sum += gradient.get()[k];
        for (size_t k = 0; k < s_size; k++) sum += ds.get()[k];
        if (!std::isfinite(sum)) return 3;
    }
    puts("no error");
}
