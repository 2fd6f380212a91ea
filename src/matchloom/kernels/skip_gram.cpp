// Skip-gram with negative samples (Mikolov et al., 2013), one job of gensim's Word2Vec: the same draws in the same order,
// so that its vectors are gensim's but for rounding. text/skip_gram.py makes the calls.

#include <cmath>

#include "product.h"

namespace {

constexpr int64_t MOST_WORDS = 10000, SIGMOIDS = 1000;  // gensim's MAX_SENTENCE_LEN and EXP_TABLE_SIZE
constexpr float LARGEST = 6.0f;                         // of a product whose sigmoid is neither 0 nor 1
constexpr float STEPS = 83.0f;                          // of the table for each 1; gensim divides 1000 by 12 as whole numbers
constexpr int PLACES = 15;                              // bits of a place in the guide

inline uint64_t drawn(uint64_t &random) {
    const uint64_t now = random >> 16;
    random = (random * 25214903917ULL + 11) & 281474976710655ULL;
    return now;
}

inline float sum_of(vec x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    return total(x);
#endif
}

struct Job {
    const uint32_t *words;     // what is left of the texts, end to end
    const int64_t *starts;     // of each text, and the end of the last one
    int64_t texts;
    const int64_t *narrower;   // by how much each word's window is
    int64_t window, negative;
    const uint32_t *sums;      // of the words' weights as negatives
    int64_t known, size;
    float *vectors, *outputs;  // [known][size]
    float rate;
    uint64_t random;
    const float *sigmoids;
    const int32_t *guide;      // for the first bits of a sum, the first word that may have it

    int64_t negative_word() {
        const uint64_t sum = (drawn(random)) % sums[known - 1];
        int64_t low = guide[sum >> (31 - PLACES)], high = guide[(sum >> (31 - PLACES)) + 1];
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (sums[middle] >= sum) high = middle;
            else low = middle + 1;
        }
        return low;
    }

    // One word of a window learns to tell its centre from negatives. NV vectors, or as many as are needed if 0.
    template <int NV>
    void pair(int64_t centre, int64_t other, vec *x, vec *moves) {
        const int64_t count = NV ? NV : whole_vecs(size);
        float *own = vectors + other * size;
        for (int64_t n = 0; n < count; n++) x[n] = load_some(own + n * WIDTH, size - n * WIDTH), moves[n] = vec{};
        for (int64_t n = 0; n <= negative; n++) {
            const int64_t word = n ? negative_word() : centre;
            if (n && word == centre) continue;
            float *out = outputs + word * size;
            vec product{};
            for (int64_t k = 0; k < count; k++) product = multiply_add(x[k], load_some(out + k * WIDTH, size - k * WIDTH), product);
            const float dot = sum_of(product);
            if (!(dot > -LARGEST && dot < LARGEST)) continue;
            const vec by = splat(((n ? 0.0f : 1.0f) - sigmoids[int((dot + LARGEST) * STEPS)]) * rate);
            for (int64_t k = 0; k < count; k++) {
                const vec before = load_some(out + k * WIDTH, size - k * WIDTH);
                moves[k] = multiply_add(by, before, moves[k]);
                store_some(out + k * WIDTH, multiply_add(by, x[k], before), size - k * WIDTH);
            }
        }
        for (int64_t n = 0; n < count; n++)
            store_some(own + n * WIDTH, load_some(own + n * WIDTH, size - n * WIDTH) + moves[n], size - n * WIDTH);
    }

    template <int NV>
    void run(vec *x, vec *moves) {
        for (int64_t text = 0; text < texts; text++)
            for (int64_t i = starts[text]; i < starts[text + 1]; i++) {
                const int64_t wide = window - narrower[i];
                const int64_t first = i - wide > starts[text] ? i - wide : starts[text];
                const int64_t last = i + wide + 1 < starts[text + 1] ? i + wide + 1 : starts[text + 1];
                for (int64_t j = first; j < last; j++)
                    if (j != i) pair<NV>(words[i], words[j], x, moves);
            }
    }
};

}  // namespace

extern "C" {

// Which words of some texts are left when frequent ones are thinned out: ids [texts one after the other], below 0 for what
// has no vector; `sample` says how often a word stays. Writes the words that are left (at most MOST_WORDS) and where each
// text starts among them; moves `random` on. Returns how many texts are left; the last start is behind the last word.
int64_t matchloom_skip_gram_words(const int32_t *ids, const int64_t *lengths, int64_t texts, const uint32_t *sample,
                                  uint64_t *random, uint32_t *words, int64_t *starts) {
    int64_t left = 0, kept = 0;
    starts[0] = 0;
    for (int64_t text = 0; text < texts; ids += lengths[text++]) {
        if (!lengths[text]) continue;
        for (int64_t n = 0; n < lengths[text] && left < MOST_WORDS; n++) {
            if (ids[n] < 0 || (sample && sample[ids[n]] < uint32_t(drawn(*random)))) continue;
            words[left++] = uint32_t(ids[n]);
        }
        starts[++kept] = left;
        if (left == MOST_WORDS) break;
    }
    return kept;
}

// One job; 0, or 1 if memory ran out.
int matchloom_skip_gram(const uint32_t *words, const int64_t *starts, int64_t texts, const int64_t *narrower,
                        int64_t window, int64_t negative, const uint32_t *sums, int64_t known, int64_t size,
                        float *vectors, float *outputs, float rate, uint64_t random) {
    const int64_t places = (int64_t(1) << PLACES) + 2, row = whole_vecs(size);
    Scratch scratch(2 * row + whole_vecs(SIGMOIDS) + whole_vecs(places));
    if (scratch.failed()) return 1;
    vec *x = scratch.take(row), *moves = scratch.take(row);
    float *sigmoids = reinterpret_cast<float *>(scratch.take(whole_vecs(SIGMOIDS)));
    int32_t *guide = reinterpret_cast<int32_t *>(scratch.take(whole_vecs(places)));
    for (int64_t n = 0; n < SIGMOIDS; n++) {
        const float power = float(std::exp((double(float(n) / float(SIGMOIDS)) * 2 - 1) * LARGEST));
        sigmoids[n] = power / (power + 1);
    }
    for (int64_t place = 0, word = 0; place < places; place++) {
        while (word < known - 1 && sums[word] < uint64_t(place) << (31 - PLACES)) word++;
        guide[place] = int32_t(word);
    }
    Job job{words, starts, texts, narrower, window, negative, sums, known, size, vectors, outputs, rate, random, sigmoids, guide};
    switch (row) {
        case 3: job.run<3>(x, moves); break;
        case 4: job.run<4>(x, moves); break;
        case 7: job.run<7>(x, moves); break;
        default: job.run<0>(x, moves);
    }
    return 0;
}
}
