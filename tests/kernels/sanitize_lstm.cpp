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

// The same texts with words that occur often: other words as x says, but the same states in either way.
int distinct_words(LstmTask task, std::mt19937 &draw) {
    const int64_t D = task.size, H = task.hidden, both = task.directions, L = task.width;
    int64_t N = 0;
    for (int64_t n = 0; n < task.count; n++) N = task.texts[n] + 1 > N ? task.texts[n] + 1 : N;
    std::vector<int64_t> ids(N * L), distinct(N * L), places(N * L);
    for (int64_t &id : ids) id = int64_t(draw() % 9) * 77;
    const int64_t U = matchloom_distinct(ids.data(), N * L, distinct.data(), places.data());
    for (int64_t n = 0; n < N * L; n++)
        if (places[n] < 0 || places[n] >= U || distinct[places[n]] != ids[n]) return 3;
    for (int64_t n = 1; n < U; n++)
        if (distinct[n] <= distinct[n - 1]) return 5;
    places.shrink_to_fit();
    const int64_t row = up_to(int(both * 4 * H), WIDTH);
    Numbers table(U * D), spread(N * L * D), projected(U * both * matchloom_lstm_gates(H));
    Numbers gates(U * row), gradient(both * matchloom_lstm_gradient(0, H)), weights(D * row);
    Numbers h(N * L * both * H), other(N * L * both * H);
    for (size_t k = 0; k < table.count; k++) table.at[k] = float(draw() % 1000) / 500 - 1;
    memset(gates.at, 0, gates.count * sizeof(float)), memset(gradient.at, 0, gradient.count * sizeof(float));
    memset(h.at, 0, h.count * sizeof(float)), memset(other.at, 0, other.count * sizeof(float));
    for (int64_t n = 0; n < N * L; n++) memcpy(spread.at + n * D, table.at + places[n] * D, D * sizeof(float));
    task.x = spread.at, task.h = other.at, task.x_gradient = nullptr;
    if (matchloom_lstm_forward(&task)) return 1;
    if (matchloom_lstm_project(table.at, U, D, H, both, task.packed, projected.at)) return 1;
    task.x = nullptr, task.h = h.at, task.words = places.data(), task.projected = projected.at;
    task.weights_gradient = gradient.at, task.words_gradient = gates.at;
    if (matchloom_lstm_forward(&task) || matchloom_lstm_backward(&task)) return 1;
    if (memcmp(h.at, other.at, h.count * sizeof(float))) return 4;
    matchloom_lstm_words_back(gates.at, U, row, table.at, D, weights.at);
    double sum = 0;
    for (size_t k = 0; k < weights.count; k++) sum += weights.at[k];
    return sum - sum == 0 ? 0 : 2;
}

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
        LstmTask task{D, H, both, round % 2, L, some, texts.data(), lengths.data(), x.at, nullptr, nullptr, packed.at,
                      turned.at, h.at, nullptr, dh.at, round % 3 ? dx.at : nullptr, gradient.at, nullptr};
        if (matchloom_lstm_forward(&task)) return 1;
        task.kept = kept.at;
        memset(gradient.at, 0, gradient.count * sizeof(float));
        if (matchloom_lstm_forward(&task) || matchloom_lstm_backward(&task)) return 1;
        double sum = 0;
        for (size_t k = 0; k < gradient.count; k++) sum += gradient.at[k];
        if (!(sum - sum == 0)) return 2;
        if (int failed = distinct_words(task, draw)) return failed;
    }
    puts("no error");
}
