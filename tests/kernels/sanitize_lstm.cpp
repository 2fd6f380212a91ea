// Random shapes through the LSTM, every array exactly as large as promised. See sanitize.cpp.
#include <cstdio>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/lstm.cpp"

struct Numbers {  // aligned as torch aligns, and not one byte more
    float *at = nullptr;
    size_t count;
    explicit Numbers(size_t count) : count(count) {
        void *place = nullptr;
        if (posix_memalign(&place, 64, count * sizeof(float) + (count == 0))) abort();
        at = static_cast<float *>(place);
    }
    ~Numbers() { free(at); }
    Numbers(const Numbers &) = delete;
};

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); };
    const auto fill = [&](Numbers &x) {
        for (size_t k = 0; k < x.count; k++) x.at[k] = std::normal_distribution<float>(0, 0.5f)(draw);
    };
    for (int round = 0; round < 30; round++) {
        const int64_t D = number(1, 20), H = number(1, 20), L = number(1, 8), both = number(1, 2);
        const int64_t N = number(1, 2 * WIDTH + 3), some = number(1, int(N < 2 * WIDTH ? N : 2 * WIDTH));
        std::vector<int64_t> lengths(N), texts(some);
        int64_t longest = 0;
        for (int64_t n = 0; n < N; n++) lengths[n] = number(1, int(L));
        for (int64_t n = 0; n < some; n++) {
            texts[n] = N - 1 - n;
            longest = lengths[texts[n]] > longest ? lengths[texts[n]] : longest;
        }
        Numbers x(N * L * D), h(N * L * both * H), dh(N * L * both * H), dx(N * L * D);
        Numbers packed(both * matchloom_lstm_packed(D, H)), turned(both * matchloom_lstm_turned(D, H));
        Numbers kept(matchloom_lstm_kept(H, both, some, longest)), gradient(both * matchloom_lstm_gradient(D, H));
        Numbers w_x(4 * H * D), w_h(4 * H * H), bias(4 * H);
        for (Numbers *one : {&x, &dh, &w_x, &w_h, &bias}) fill(*one);
        for (int64_t n = 0; n < both; n++) {
            matchloom_lstm_pack(w_x.at, w_h.at, bias.at, bias.at, D, H, packed.at + n * matchloom_lstm_packed(D, H));
            matchloom_lstm_turn(w_x.at, w_h.at, D, H, turned.at + n * matchloom_lstm_turned(D, H));
        }
        LstmTask task{D, H, both, round % 2, L, some, texts.data(), lengths.data(), x.at, packed.at, turned.at, h.at,
                      nullptr, dh.at, round % 3 ? dx.at : nullptr, gradient.at};
        if (matchloom_lstm_forward(&task)) return 1;
        task.kept = kept.at;
        if (matchloom_lstm_forward(&task) || matchloom_lstm_backward(&task)) return 1;
        double sum = 0;
        for (size_t k = 0; k < gradient.count; k++) sum += gradient.at[k];
        if (!(sum - sum == 0)) return 2;
    }
    puts("no error");
}
