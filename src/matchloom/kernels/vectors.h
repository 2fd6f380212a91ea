// Vectors of a processor's whole width, in float32 or, with MATCHLOOM_DOUBLE, in double: what several kernels share.
//
// GCC's and clang's vector extensions do most of it, so that one source serves AVX-512, AVX2 and any other processor.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

#if defined(MATCHLOOM_DOUBLE)
typedef double real;
typedef int64_t whole;
#else
typedef float real;
typedef int32_t whole;
#endif

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX2__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int WIDTH = BYTES / sizeof(real);

typedef real vec __attribute__((vector_size(BYTES)));
typedef whole ivec __attribute__((vector_size(BYTES)));

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

inline vec splat(real x) { return x - vec{}; }  // minus: 0 + x is not x where x is -0, and would be computed

// What the vector extensions have no name for. Least and greatest give b where either is NaN; one step of Newton's
// method doubles the 14 or 12 bits of the approximate reciprocal.
#if defined(MATCHLOOM_DOUBLE)
inline vec least(vec a, vec b) { return a < b ? a : b; }
inline vec greatest(vec a, vec b) { return a > b ? a : b; }
inline vec reciprocal(vec x) { return 1.0 / x; }
#elif defined(__AVX512F__)
inline vec least(vec a, vec b) { return (vec)_mm512_maskz_min_ps(0xFFFF, (__m512)a, (__m512)b); }
inline vec greatest(vec a, vec b) { return (vec)_mm512_maskz_max_ps(0xFFFF, (__m512)a, (__m512)b); }
inline vec reciprocal(vec x) {
    const vec y = (vec)_mm512_maskz_rcp14_ps(0xFFFF, (__m512)x);
    return y * (2.0f - x * y);
}
#elif defined(__AVX2__)
inline vec least(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
inline vec greatest(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
inline vec reciprocal(vec x) {
    const vec y = (vec)_mm256_rcp_ps((__m256)x);
    return y * (2.0f - x * y);
}
#else
inline vec least(vec a, vec b) { return a < b ? a : b; }
inline vec greatest(vec a, vec b) { return a > b ? a : b; }
inline vec reciprocal(vec x) { return 1.0f / x; }
#endif

// a * b + c, rounded once where the processor can. Where the order of rounding must not be left to the compiler (two
// products are added; a score must not depend on how many lanes are in use) it is written by this.
inline vec multiply_add(vec a, vec b, vec c) {
#if defined(MATCHLOOM_DOUBLE) || !defined(__FMA__)
    return a * b + c;
#elif defined(__AVX512F__)
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

// 2^x = 2^n 2^r with n the integer nearest to x, and a polynomial for 2^r, |r| <= 1/2, fitted for least error (2e-9 in
// float32, 3e-18 in double). Beyond 125 it stays where it is, so that reciprocals are normal numbers too, and so it does
// below -125 where the processor has no instruction for 2^n; NaN stays NaN. Sigmoid, tanh and softmax need e^x: the weights are scaled beforehand, see pack_forward.
#if defined(MATCHLOOM_DOUBLE)
constexpr real POWERS[] = {4.45581790833606449e-10, 7.07419429728852101e-9, 1.01780570877339411e-7,
                           1.32154325359123762e-6,  1.52527338415567726e-5, 1.54035304637243542e-4,
                           1.33335581464064707e-3,  9.61812910758725667e-3, 5.55041086648216270e-2,
                           0.240226506959101596,    0.693147180559945309,   1.0};
constexpr real MAGIC = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds, and leaves n in the lowest bits
constexpr int FRACTION = 52;
#else
constexpr real POWERS[] = {0.0001535330957f, 0.001339893905f, 0.009618437849f, 0.05550332367f,
                           0.2402264774f,    0.6931471825f,   1.0f};
constexpr real MAGIC = 12582912.0f;  // 1.5 * 2^23
constexpr int FRACTION = 23;
#endif
// Several at once, step by step, so that a processor need not wait for one step's result to begin the next.
template <int N>
inline void powers_of_two(vec (&x)[N]) {
    vec r[N], p[N];
    UNROLL for (int n = 0; n < N; n++) {
#if defined(__AVX512F__) && !defined(MATCHLOOM_DOUBLE)
        x[n] = least(splat(125.0f), x[n]);
        const vec whole_part = (vec)_mm512_maskz_roundscale_ps(0xFFFF, (__m512)x[n], 8);
        r[n] = x[n] - whole_part, x[n] = whole_part;
#else
        x[n] = greatest(splat(-125.0f), least(splat(125.0f), x[n]));
        const vec shifted = x[n] + MAGIC;
        r[n] = x[n] - (shifted - MAGIC), x[n] = shifted;
#endif
        p[n] = splat(POWERS[0]);
    }
    UNROLL for (size_t k = 1; k < sizeof(POWERS) / sizeof(real); k++)
        UNROLL for (int n = 0; n < N; n++) p[n] = multiply_add(p[n], r[n], splat(POWERS[k]));
    UNROLL for (int n = 0; n < N; n++)
#if defined(__AVX512F__) && !defined(MATCHLOOM_DOUBLE)
        x[n] = (vec)_mm512_maskz_scalef_ps(0xFFFF, (__m512)p[n], (__m512)x[n]);
#else
        x[n] = (vec)((ivec)p[n] + ((ivec)x[n] << FRACTION));
#endif
}
inline vec power_of_two(vec x) {
    vec one[1] = {x};
    powers_of_two(one);
    return one[0];
}

constexpr real LOG2E = real(1.4426950408889634);

// sigmoid and tanh of x by y = -x log2(e) and y = 2x log2(e).
inline vec sigmoid_of(vec y) { return reciprocal(1.0f + power_of_two(y)); }
inline vec tanh_of(vec y) { return multiply_add(splat(-2.0f), sigmoid_of(y), splat(1.0f)); }
template <int N>
inline void sigmoids_of(vec (&y)[N]) {
    powers_of_two(y);
    UNROLL for (int n = 0; n < N; n++) y[n] = reciprocal(1.0f + y[n]);
}
template <int N>
inline void tanhs_of(vec (&y)[N]) {
    sigmoids_of(y);
    UNROLL for (int n = 0; n < N; n++) y[n] = multiply_add(splat(-2.0f), y[n], splat(1.0f));
}

inline real total(vec x) {
    real sum = 0;
    for (int lane = 0; lane < WIDTH; lane++) sum += x[lane];
    return sum;
}

// A bit for each lane where not a <= b: also where either is NaN, so that a diverged network shows.
inline unsigned not_at_most(vec a, vec b) {
#if defined(MATCHLOOM_DOUBLE) || !defined(__AVX2__)
    unsigned bits = 0;
    for (int lane = 0; lane < WIDTH; lane++) bits |= unsigned(!(a[lane] <= b[lane])) << lane;
    return bits;
#elif defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLE_UQ);
#else
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NLE_UQ)));
#endif
}

// Scratch memory, aligned for vec. One block a call, cut into pieces.
class Scratch {
    char *start = nullptr, *next = nullptr;

  public:
    explicit Scratch(size_t vecs) {
        const size_t bytes = vecs * sizeof(vec);
        start = next = static_cast<char *>(aligned_alloc(sizeof(vec), bytes));
        if (start) memset(start, 0, bytes);
    }
    ~Scratch() { free(start); }
    Scratch(const Scratch &) = delete;
    bool failed() const { return !start; }
    vec *take(size_t vecs) {
        vec *piece = reinterpret_cast<vec *>(next);
        next += vecs * sizeof(vec);
        return piece;
    }
};

}  // namespace
