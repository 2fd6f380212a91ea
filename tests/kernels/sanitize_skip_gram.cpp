// Random jobs of skip-gram, every array exactly as large as promised. See sanitize.cpp.
#include <cstdio>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/skip_gram.cpp"

int main(int count, char **words) {
    std::mt19937 draw(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(draw); };
    for (int round = 0; round < 40; round++) {
        const int64_t known = number(1, 300), size = number(1, 130), texts = number(1, 20), window = number(1, 6);
        std::vector<int64_t> lengths(texts), starts(texts + 1);
        std::vector<int32_t> ids;
        for (int64_t &length : lengths) {
            length = round % 13 ? number(0, 30) : number(0, 2000);
            for (int64_t n = 0; n < length; n++) ids.push_back(int32_t(number(-1, known - 1)));
        }
        ids.shrink_to_fit();
        std::vector<uint32_t> sample(known), sums(known), left(MOST_WORDS);
        for (uint32_t &one : sample) one = uint32_t(number(0, 4294967295));
        for (int64_t n = 0; n < known; n++) sums[n] = uint32_t((int64_t(1) << 31) * (n + 1) / known - 1);
        uint64_t random = uint64_t(number(0, int64_t(1) << 47));
        const int64_t kept = matchloom_skip_gram_words(ids.data(), lengths.data(), texts, round % 2 ? sample.data() : nullptr,
                                                       &random, left.data(), starts.data());
        std::vector<uint32_t> own(left.begin(), left.begin() + starts[kept]);
        std::vector<int64_t> narrower(own.size());
        for (int64_t &one : narrower) one = number(0, window - 1);
        std::vector<float> vectors(known * size), outputs(known * size);
        for (float &one : vectors) one = std::normal_distribution<float>(0, 0.5f)(draw);
        if (matchloom_skip_gram(own.data(), starts.data(), kept, narrower.data(), window, number(0, 6), sums.data(), known,
                                size, vectors.data(), outputs.data(), 0.025f, random))
            return 1;
        double sum = 0;
        for (float one : vectors) sum += one;
        if (!(sum - sum == 0)) return 2;
    }
    puts("no error");
}
