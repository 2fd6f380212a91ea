// One step of Adam (Kingma and Ba, 2015) in one pass over a parameter; training/adam.py makes the calls.
//
//     m <- m + (1 - beta1) (g - m)
//     v <- beta2 v + (1 - beta2) g^2
//     x <- shrink x - step m / (root sqrt(v) + epsilon)
//
// Every number is worked on alone, so that nothing depends on how a parameter is cut. A row that no gradient names has a
// gradient of 0 and moves on by its m. What would be a denormal number becomes 0: rare words' m get there after some 800
// steps, and each product of one takes a processor a hundred times as long.

#include <cmath>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "product.h"

namespace {

constexpr float TINY = 1.2e-38f;  // below it numbers are denormal

inline vec root_of(vec x) {
#if defined(__AVX512F__)
    return (vec)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)x);
#elif defined(__AVX2__)
    return (vec)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE__)
    return (vec)_mm_sqrt_ps((__m128)x);
#elif defined(__aarch64__)
    return (vec)vsqrtq_f32((float32x4_t)x);
#else
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = std::sqrt(x[lane]);
    return x;
#endif
}

struct Adam {
    float first, beta2, second, step, root, epsilon, shrink;  // first and second are 1 - beta

    inline void move(float *x, float *m, float *v, const float *gradient, int64_t some) const {
        const vec g = gradient ? load_some(gradient, some) : vec{}, before = load_some(m, some);
        vec own = multiply_add(splat(first), g - before, before);
        own = (own < TINY) & (own > -TINY) ? vec{} : own;
        vec square = multiply_add(g * second, g, load_some(v, some) * beta2);
        square = square < TINY ? vec{} : square;
        store_some(m, own, some);
        store_some(v, square, some);
        const vec shrunk = multiply_add(load_some(x, some), splat(shrink), vec{});  // rounded by itself, as torch's is
        store_some(x, shrunk - own * step / (root_of(square) / root + epsilon), some);
    }

    void run(float *x, float *m, float *v, const float *gradient, int64_t count) const {
        for (int64_t n = 0; n < count; n += WIDTH)
            move(x + n, m + n, v + n, gradient ? gradient + n : nullptr, count - n);
    }
};

}  // namespace

extern "C" {

// x, m and v are [rows][size]; gradient is [given][size] for the rows `at`, in ascending order and each once. `settings`
// has the fields of Adam.
void matchloom_adam(float *x, float *m, float *v, int64_t rows, int64_t size, const int64_t *at, const float *gradient,
                    int64_t given, const float *settings) {
    Adam adam;
    memcpy(&adam, settings, sizeof adam);
    int64_t done = 0;
    for (int64_t n = 0; n <= given; n++) {
        const int64_t row = n < given ? at[n] : rows;
        adam.run(x + done * size, m + done * size, v + done * size, nullptr, (row - done) * size);
        if (n < given) adam.run(x + row * size, m + row * size, v + row * size, gradient + n * size, size);
        done = row + 1;
    }
}
}
