// The cosines of a query's words to those of many texts, all of them whole numbers of eight bits.
// layers/int8_positions.py says what a position is and what is asked; torch computes the same, bit by bit.
//
// Words of the query are SIMD lanes: sixteen bits of two neighbouring numbers stand side by side for each of WORDS
// words, so that one instruction multiplies and adds them for all, and no sum has to be taken across a register. Texts
// go through a few positions at a time, which share what was loaded of the query.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr int WORDS = 16, AT_ONCE = 4, DIGITS = 4;

// 1 / |q| by the digits behind a position, or -1 where it was not read. A position of zeros has 0.
double inverse_length(const int8_t *digits) {
    if (digits[DIGITS - 1] < 0) return -1.0;
    int32_t square = 0;
    for (int n = 0; n < DIGITS; n++) square = 128 * square + digits[n];
    return square > 0 ? 1.0 / std::sqrt(double(square)) : 0.0;
}

void widen(const int8_t *from, int64_t count, int16_t *to) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 16 <= count; i += 16) {
        const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i), _mm256_cvtepi8_epi16(some));
    }
#endif
    for (; i < count; i++) to[i] = from[i];
}

// sums[p][w] = the product of position p and word w. query [half][WORDS][2], positions [AT_ONCE][half][2].
void products(const int16_t *query, const int16_t *positions, int64_t half, int32_t *sums) {
#if defined(__AVX2__)
    // Variables, not an array: compilers keep that in memory.
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    const auto at = [&](int p, int64_t i) {
        int32_t both;
        memcpy(&both, positions + (p * half + i) * 2, sizeof both);
        return _mm256_set1_epi32(both);
    };
    for (int64_t i = 0; i < half; i++) {
        const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(query + i * 2 * WORDS));
        const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(query + i * 2 * WORDS + WORDS));
        __m256i x = at(0, i);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(x, first)), b = _mm256_add_epi32(b, _mm256_madd_epi16(x, second));
        x = at(1, i);
        c = _mm256_add_epi32(c, _mm256_madd_epi16(x, first)), d = _mm256_add_epi32(d, _mm256_madd_epi16(x, second));
        x = at(2, i);
        e = _mm256_add_epi32(e, _mm256_madd_epi16(x, first)), f = _mm256_add_epi32(f, _mm256_madd_epi16(x, second));
        x = at(3, i);
        g = _mm256_add_epi32(g, _mm256_madd_epi16(x, first)), h = _mm256_add_epi32(h, _mm256_madd_epi16(x, second));
    }
    const __m256i all[] = {a, b, c, d, e, f, g, h};
    static_assert(sizeof all == AT_ONCE * WORDS * sizeof *sums, "four positions, sixteen words");
    memcpy(sums, all, sizeof all);
#else
    memset(sums, 0, AT_ONCE * WORDS * sizeof *sums);
    for (int p = 0; p < AT_ONCE; p++)
        for (int64_t i = 0; i < half; i++) {
            const int32_t a = positions[(p * half + i) * 2], b = positions[(p * half + i) * 2 + 1];
            const int16_t *q = query + i * 2 * WORDS;
            for (int w = 0; w < WORDS; w++) sums[p * WORDS + w] += a * q[2 * w] + b * q[2 * w + 1];
        }
#endif
}

}  // namespace

extern "C" {

// query [words][numbers + DIGITS], texts [count][positions][numbers + DIGITS], found [count][words][positions]: -inf
// where either was not read. 0, or 1 if memory ran out.
int matchloom_int8_cosines(const int8_t *query, int64_t words, const int8_t *texts, int64_t count, int64_t positions,
                           int64_t numbers, double *found) {
    const int64_t step = numbers + DIGITS, half = (numbers + 1) / 2, blocks = (words + WORDS - 1) / WORDS;
    int16_t *wide = static_cast<int16_t *>(calloc((blocks * WORDS + AT_ONCE) * half * 2 + 1, sizeof(int16_t)));
    double *lengths = static_cast<double *>(malloc((words + 1) * sizeof(double)));
    if (!wide || !lengths) {
        free(wide), free(lengths);
        return 1;
    }
    for (int64_t w = 0; w < words; w++) {
        const int8_t *own = query + w * step;
        lengths[w] = inverse_length(own + numbers);
        int16_t *block = wide + w / WORDS * half * 2 * WORDS;
        for (int64_t i = 0; i < numbers; i++) block[(i / 2 * WORDS + w % WORDS) * 2 + i % 2] = own[i];
    }
    int16_t *rows = wide + blocks * WORDS * half * 2;  // an odd number leaves a 0 behind each
    int32_t sums[AT_ONCE * WORDS];
    for (int64_t n = 0; n < count; n++, texts += positions * step, found += words * positions)
        for (int64_t first = 0; first < positions; first += AT_ONCE) {
            const int64_t some = positions - first < AT_ONCE ? positions - first : AT_ONCE;
            double inverse[AT_ONCE];
            for (int64_t p = 0; p < some; p++) {
                const int8_t *own = texts + (first + p) * step;
                inverse[p] = inverse_length(own + numbers);
                widen(own, numbers, rows + p * half * 2);
            }
            for (int64_t b = 0; b < blocks; b++) {
                products(wide + b * half * 2 * WORDS, rows, half, sums);
                const int64_t last = words - b * WORDS < WORDS ? words - b * WORDS : WORDS;
                for (int64_t w = 0; w < last; w++) {
                    const double own = lengths[b * WORDS + w];
                    double *out = found + (b * WORDS + w) * positions + first;
                    for (int64_t p = 0; p < some; p++)
                        out[p] = own < 0 || inverse[p] < 0 ? -std::numeric_limits<double>::infinity()
                                                            : double(sums[p * WORDS + w]) * own * inverse[p];
                }
            }
        }
    free(wide), free(lengths);
    return 0;
}
}
