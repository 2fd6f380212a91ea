// Which values k-max pooling keeps: the k largest of each channel of a text, in the order in which they stand there.
// layers/pooling.py says what is asked; this finds the places, and torch takes the values.
//
// Channels are SIMD lanes: `vec` holds one position of WIDTH channels. A sorting network (Batcher's merge exchange, for
// any length) brings all lanes into order at once and so gives each its k-th largest value; a second walk over the
// positions writes down those above it, and the first of those equal to it.

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

#if defined(__AVX512F__)
constexpr int WIDTH = 16;
#elif defined(__AVX2__)
constexpr int WIDTH = 8;
#else
constexpr int WIDTH = 4;
#endif

typedef float vec __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ivec __attribute__((vector_size(4 * WIDTH)));

// Ascending in every lane.
void sort(vec *v, int64_t n) {
    int64_t top = 1;
    while (2 * top < n) top *= 2;
    for (int64_t p = top; p > 0; p /= 2) {
        int64_t q = top, r = 0, d = p;
        while (true) {
            for (int64_t i = 0; i < n - d; i++) {
                if ((i & p) != r) continue;
                const vec a = v[i], b = v[i + d];
                v[i] = a < b ? a : b;
                v[i + d] = a < b ? b : a;
            }
            if (q == p) break;
            d = q - p, q /= 2, r = p;
        }
    }
}

}  // namespace

extern "C" {

// x [texts][positions][channels]; text n has lengths[n] positions, of which counts[n] are to be kept in each channel.
// places [texts][most][channels]: behind counts[n] stands the last position. 0, or 1 if memory ran out.
int matchloom_k_max(const float *x, int64_t texts, int64_t positions, int64_t channels, int64_t most,
                    const int64_t *lengths, const int64_t *counts, int64_t *places) {
    vec *block = static_cast<vec *>(aligned_alloc(sizeof(vec), 2 * positions * sizeof(vec)));
    int64_t *kept = static_cast<int64_t *>(malloc((positions + 1) * WIDTH * sizeof(int64_t)));
    if (!block || !kept) {
        free(block), free(kept);
        return 1;
    }
    vec *sorted = block + positions;
    for (int64_t text = 0; text < texts; text++, x += positions * channels, places += most * channels) {
        const int64_t length = lengths[text], count = counts[text];
        for (int64_t first = 0; first < channels; first += WIDTH) {
            const int64_t lanes = channels - first < WIDTH ? channels - first : WIDTH;
            for (int64_t t = 0; t < length; t++) {
                block[t] = vec{};
                memcpy(&block[t], x + t * channels + first, lanes * sizeof(float));
                sorted[t] = block[t];
            }
            sort(sorted, length);
            const vec smallest = sorted[length - count];
            ivec equal{};  // how many of the values that equal the smallest one are kept
            for (int64_t t = length - count; t < length; t++) equal -= sorted[t] == smallest;
            int32_t found[WIDTH] = {};
            for (int64_t t = 0; t < length; t++) {
                const ivec same = block[t] == smallest;
                const ivec keep = (block[t] > smallest) | (same & (equal > 0));
                equal += same;
                for (int lane = 0; lane < WIDTH; lane++) {
                    kept[found[lane] * WIDTH + lane] = t;
                    found[lane] -= keep[lane];
                }
            }
            for (int64_t k = 0; k < most; k++)
                for (int64_t lane = 0; lane < lanes; lane++) {
                    const bool there = k < count && k < found[lane];  // where there is NaN, fewer may be found
                    places[k * channels + first + lane] = there ? kept[k * WIDTH + lane] : positions - 1;
                }
        }
    }
    free(block), free(kept);
    return 0;
}
}
