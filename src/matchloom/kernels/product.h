// Matrix products whose every number is one sum over k = 0, 1, 2, ... in this order, each step rounded once where the
// processor can: whatever stands in other rows and columns, and however many of them there are, moves no bit of it.

#pragma once

#include "transpose.h"

namespace {

constexpr int PANEL = 4;  // vectors of columns in registers at once, for ROWS_AT_ONCE rows
#if defined(__AVX512F__)
constexpr int ROWS_AT_ONCE = 6;
#else
constexpr int ROWS_AT_ONCE = 3;
#endif

template <int NV>
struct Tile {
    vec at[ROWS_AT_ONCE][NV];
};

// tile[r][c] += the sum over k of rows[r][k] * columns[k][c]; a panel has its columns as [k][NV].
template <int NV>
inline void add_product(Tile<NV> &tile, const float *const *rows, int64_t count, const vec *columns) {
    Tile<NV> sum = tile;
    const float *own[ROWS_AT_ONCE];
    UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++) own[r] = rows[r];
    for (int64_t k = 0; k < count; k++, columns += NV)
        UNROLL for (int r = 0; r < ROWS_AT_ONCE; r++)
            UNROLL for (int v = 0; v < NV; v++) sum.at[r][v] = multiply_add(splat(own[r][k]), columns[v], sum.at[r][v]);
    tile = sum;
}

// Columns of a matrix [k][width] from `first` on as a panel of NV vectors; 0 behind the last one.
inline void pack_panel(const float *matrix, int64_t count, int64_t width, int64_t first, int nv, vec *panel) {
    const int64_t some = width - first < nv * WIDTH ? width - first : nv * WIDTH;
    for (int64_t k = 0; k < count; k++, panel += nv) {
        float *to = reinterpret_cast<float *>(panel);
        memcpy(to, matrix + k * width + first, some * sizeof(float));
        memset(to + some, 0, (nv * WIDTH - some) * sizeof(float));
    }
}

// How many vectors the panel that starts at column `first` of `width` has.
inline int panel_vecs(int64_t width, int64_t first) {
    const int64_t left = (width - first + WIDTH - 1) / WIDTH;
    return left < PANEL ? int(left) : PANEL;
}
inline int64_t whole_vecs(int64_t numbers) { return (numbers + WIDTH - 1) / WIDTH; }

// Calls work.template panel<NV>(...) for the NV that is known only now.
template <class Work, class... Given>
inline void for_panel(int nv, Work &&work, Given... given) {
    switch (nv) {
        case 1: return work.template panel<1>(given...);
        case 2: return work.template panel<2>(given...);
        case 3: return work.template panel<3>(given...);
        default: return work.template panel<4>(given...);
    }
}

// The first numbers of a vector, written; and read, with 0 behind them.
inline void store_some(float *to, vec x, int64_t count) {
    if (count >= WIDTH) {
        memcpy(to, &x, sizeof x);
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)x);
#else
    memcpy(to, &x, count * sizeof(float));
#endif
}
inline vec load_some(const float *from, int64_t count) {
    vec x{};
    if (count >= WIDTH) {
        memcpy(&x, from, sizeof x);
        return x;
    }
#if defined(__AVX512F__)
    return (vec)_mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
#else
    memcpy(&x, from, count * sizeof(float));
    return x;
#endif
}

}  // namespace
