// Rows of numbers into lanes and back: number k of row l becomes lane l of vector k.

#pragma once

#include "vectors.h"

namespace {

#if defined(__AVX512F__)
// Sixteen vectors of sixteen, turned in place.
inline void turn(__m512 (&r)[16]) {
    __m512 t[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) {
        UNROLL for (int half = 0; half < 2; half++) {
            const __m512d a = _mm512_castps_pd(t[i + half]), b = _mm512_castps_pd(t[i + 2 + half]);
            r[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        UNROLL for (int half = 0; half < 2; half++) {
            t[8 * half + i] = _mm512_shuffle_f32x4(r[8 * half + i], r[8 * half + 4 + i], 0x88);
            t[8 * half + 4 + i] = _mm512_shuffle_f32x4(r[8 * half + i], r[8 * half + 4 + i], 0xdd);
        }
    }
    UNROLL for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
        r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    }
}
#endif

// lanes[k * NV + v] has number k of rows [v * WIDTH, (v + 1) * WIDTH). All rows can be read.
template <int NV>
inline void to_lanes(const float *const *rows, int count, vec *lanes) {
    for (int v = 0; v < NV; v++) {
        const float *const *from = rows + v * WIDTH;
        int k = 0;
#if defined(__AVX512F__)
        for (; k < count; k += WIDTH) {
            const int some = count - k < WIDTH ? count - k : WIDTH;
            const __mmask16 mask = __mmask16((1u << some) - 1);
            __m512 block[16];
            UNROLL for (int l = 0; l < 16; l++) block[l] = _mm512_maskz_loadu_ps(mask, from[l] + k);
            turn(block);
            UNROLL for (int i = 0; i < 16; i++)  // unrolled, so that the block stays in registers
                if (i < some) lanes[(k + i) * NV + v] = (vec)block[i];
        }
#else
        for (; k < count; k++) {
            float *to = reinterpret_cast<float *>(lanes + k * NV + v);
            for (int l = 0; l < WIDTH; l++) to[l] = from[l][k];
        }
#endif
    }
}

// The way back, for rows that are not null. ADD: to what stands there.
template <int NV, bool ADD>
inline void from_lanes(const vec *lanes, int count, float *const *rows) {
    for (int v = 0; v < NV; v++) {
        float *const *to = rows + v * WIDTH;
        int k = 0;
#if defined(__AVX512F__)
        for (; k < count; k += WIDTH) {
            const int some = count - k < WIDTH ? count - k : WIDTH;
            const __mmask16 mask = __mmask16((1u << some) - 1);
            __m512 block[16];
            UNROLL for (int i = 0; i < 16; i++) block[i] = i < some ? (__m512)lanes[(k + i) * NV + v] : _mm512_setzero_ps();
            turn(block);
            UNROLL for (int l = 0; l < 16; l++) {
                if (!to[l]) continue;
                if (ADD) block[l] = _mm512_add_ps(block[l], _mm512_maskz_loadu_ps(mask, to[l] + k));
                _mm512_mask_storeu_ps(to[l] + k, mask, block[l]);
            }
        }
#else
        for (int l = 0; l < WIDTH; l++) {
            if (!to[l]) continue;
            const float *from = reinterpret_cast<const float *>(lanes + v) + l;
            for (k = 0; k < count; k++) to[l][k] = from[size_t(k) * NV * WIDTH] + (ADD ? to[l][k] : 0.0f);
        }
#endif
    }
}

// A row that is read or, with WRITE, written soon: rows of many texts are more streams than a processor foresees.
template <bool WRITE>
inline void expect(const float *row, int count) {
    for (int k = 0; k < count; k += 16) __builtin_prefetch(row + k, WRITE);
    __builtin_prefetch(row + count - 1, WRITE);
}

// The same of a row that is changed after much else: it need not be in the nearest cache.
inline void expect_later(const float *row, int count) {
    for (int k = 0; k < count; k += 16) __builtin_prefetch(row + k, 0, 2);
    __builtin_prefetch(row + count - 1, 0, 2);
}

}  // namespace
