// Random shapes through the layers of transformers, every array exactly as large as promised. See sanitize.cpp.
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/interact.cpp"
#include "../../src/matchloom/kernels/transformer.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int low, int high) { return int64_t(std::uniform_int_distribution<>(low, high)(draw)); };
    const auto numbers = [&](size_t count) {
        std::vector<float> x(count);
        for (float &one : x) one = std::normal_distribution<float>(0, 0.5f)(draw);
        return x;
    };
    struct Freed {
        void operator()(float *x) const { free(x); }
    };
    const auto panels = [&](int64_t inputs, int64_t outputs) {
        const auto w = numbers(inputs * outputs);
        void *packed = nullptr;
        if (posix_memalign(&packed, 64, matchloom_packed(inputs, outputs) * sizeof(float))) abort();
        matchloom_pack(w.data(), inputs, outputs, outputs, 1, static_cast<float *>(packed));
        return std::unique_ptr<float, Freed>(static_cast<float *>(packed));
    };
    for (int round = 0; round < 20; round++) {
        const int64_t heads = number(1, 4), D = heads * number(1, 40), inner = number(1, 90), texts = number(1, 5);
        std::vector<int64_t> starts{0};
        for (int64_t n = 0; n < texts; n++) starts.push_back(starts.back() + number(1, round % 4 ? 20 : 150));
        auto x = numbers(starts.back() * D);
        const auto qkv = panels(D, 3 * D), out = panels(D, D), up = panels(D, inner), down = panels(inner, D);
        const auto wide = numbers(3 * D), own = numbers(D), narrow = numbers(inner);
        const LayerWeights layer{qkv.get(), wide.data(), out.get(),  own.data(), up.get(),   narrow.data(),
                                 down.get(), own.data(),  own.data(), own.data(), own.data(), own.data()};
        const LayerWeights layers[] = {layer, layer};
        const TransformerTask task{D, heads, inner, 2, round % 2, 1e-12, texts, starts.data(), layers, own.data(), own.data(),
                                   x.data()};
        if (matchloom_transformer(&task)) return 1;
        for (const float one : x)
            if (one != one) return 2;
    }
    puts("no error");
}
