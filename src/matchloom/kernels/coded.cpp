// The entries nearest to a question among dense vectors, by a copy of them in eight bits that says who can be.
//
//   v = step * code + rest,  |x . v - step * (x . code)| <= |x| |rest|
//
// The question is rounded to sixteen bits, which adds a little to that. An entry whose upper bound is below the
// `most`-highest lower bound is none of the best; the others are compared as `matchloom_vectors_dot` does. What is found
// is what a scan of all vectors finds, to the bit. Sums of codes are whole numbers, the same on every processor.

#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

constexpr double LARGEST = 2147483647.0, ROUNDING = 1e-6;

struct Near {
    double score;
    int64_t entry;
};

inline bool nearer(const Near &a, const Near &b) {
    return a.score > b.score || (a.score == b.score && a.entry < b.entry);
}

inline void offer(Near *heap, int64_t &count, int64_t most, Near one) {
    if (count < most) {
        heap[count++] = one;
        std::push_heap(heap, heap + count, nearer);
    } else if (nearer(one, heap[0])) {
        std::pop_heap(heap, heap + count, nearer);
        heap[count - 1] = one;
        std::push_heap(heap, heap + count, nearer);
    }
}

// `width` is a multiple of 32.
inline int32_t code_dot(const int8_t *code, const int16_t *question, int64_t width) {
#if defined(__AVX2__)
    __m256i a = _mm256_setzero_si256(), b = a;
    const auto part = [&](int64_t i) {
        const __m256i own = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(code + i)));
        return _mm256_madd_epi16(own, _mm256_loadu_si256(reinterpret_cast<const __m256i *>(question + i)));
    };
    for (int64_t i = 0; i < width; i += 32)
        a = _mm256_add_epi32(a, part(i)), b = _mm256_add_epi32(b, part(i + 16));
    const __m256i both = _mm256_add_epi32(a, b);
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1));
    return _mm_cvtsi128_si32(half);
#else
    int32_t sum = 0;
    for (int64_t i = 0; i < width; i++) sum += int32_t(code[i]) * question[i];
    return sum;
#endif
}

double exact_dot(const float *row, const double *vector, int64_t size) {
    double lanes[8] = {0};
    for (int64_t i = 0; i < size; i += 8)
        for (int64_t j = 0; j < 8; j++) {
            const double added = double(row[i + j]) * vector[i + j];
            lanes[j] += added;
        }
    double sum = lanes[0];
    for (int64_t j = 1; j < 8; j++) sum += lanes[j];
    return sum;
}

}  // namespace

extern "C" {

// Entry n has the vectors from starts[n] on: their codes [..][width] one after the other, their rows of `table` [..][size]
// in `places`. The score of an entry is the highest product of its vectors with `vector` [size], 0 where it has none.
// out [most] are the entries with the highest scores of those that are alive, best first, equal ones by number. How many
// there are, or -1 if memory ran out.
int64_t matchloom_nearest_entries(const int8_t *codes, const float *steps, const float *errors, int64_t width,
                                  const float *table, int64_t size, const double *vector, int64_t entries,
                                  const int64_t *starts, const int32_t *places, const uint8_t *alive, int64_t most,
                                  int64_t *out) {
    int16_t *question = static_cast<int16_t *>(calloc(width + 1, sizeof(int16_t)));
    double *upper = static_cast<double *>(malloc(sizeof(double) * (entries + 1)));
    Near *heap = static_cast<Near *>(malloc(sizeof(Near) * (most + 1)));
    if (!question || !upper || !heap) {
        free(question), free(upper), free(heap);
        return -1;
    }
    double highest = 0, square = 0, rest = 0;
    for (int64_t i = 0; i < size; i++) highest = std::max(highest, std::fabs(vector[i])), square += vector[i] * vector[i];
    // No sum of `width` products with codes of up to 127 may be larger than 31 bits.
    const double step = highest / std::min(32767.0, std::floor(LARGEST / (128.0 * double(width))));
    for (int64_t i = 0; i < size && step > 0; i++) {
        question[i] = int16_t(std::lrint(vector[i] / step));
        const double left = vector[i] - step * question[i];
        rest += left * left;
    }
    const double length = std::sqrt(square), lost = std::sqrt(rest) * 127.0 * std::sqrt(double(size));
    const double infinite = HUGE_VAL;
    int64_t count = 0;
    for (int64_t n = 0; n < entries; n++) {
        if (alive && !alive[n]) continue;
        const int64_t last = starts[n + 1];
        double low = starts[n] < last ? -infinite : 0, high = low;
        for (int64_t i = starts[n]; i < last; i++) {
            const double near = step * double(steps[i]) * double(code_dot(codes + i * width, question, width));
            const double apart = (length * double(errors[i]) + lost * double(steps[i])) * (1 + ROUNDING) + 1e-12;
            low = std::max(low, near - apart), high = std::max(high, near + apart);
        }
        upper[n] = high;
        if (count < most || low > heap[0].score) offer(heap, count, most, {low, n});
    }
    const double least = count < most ? -infinite : heap[0].score;
    count = 0;
    for (int64_t n = 0; n < entries && most; n++) {
        if ((alive && !alive[n]) || upper[n] < least) continue;
        double score = starts[n] < starts[n + 1] ? -infinite : 0;
        for (int64_t i = starts[n]; i < starts[n + 1]; i++)
            score = std::max(score, exact_dot(table + places[i] * size, vector, size));
        offer(heap, count, most, {score, n});
    }
    std::sort_heap(heap, heap + count, nearer);
    for (int64_t i = 0; i < count; i++) out[i] = heap[i].entry;
    free(question), free(upper), free(heap);
    return count;
}

}  // extern "C"
