// Matrix products whose every number is one sum over k = 0, 1, 2, ... in this order, each step rounded once where the
// processor can: whatever stands in other rows and columns, and however many of them there are, moves no bit of it.

#pragma once

#include "transpose.h"

namespace {

constexpr int PANEL = 4;  // vectors of columns in registers at once, for ROWS_AT_ONCE rows
#if defined(__AVX512F__)
constexpr int ROWS_AT_ONCE = 6, OUTER = 5;  // OUTER x OUTER vectors of an outer product
#else
constexpr int ROWS_AT_ONCE = 3, OUTER = 3;
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

// out[row][column] = bias[column] + the sum over k of x[row][k] * w[k][column]
struct Product {
    const float *x, *bias;
    int64_t rows, inputs, outputs;
    float *out;
    template <int NV>
    void panel(int64_t first, const vec *columns) {
        Tile<NV> start{};
        for (int v = 0; bias && v < NV; v++)
            for (int lane = 0; lane < WIDTH && first + v * WIDTH + lane < outputs; lane++)
                start.at[0][v][lane] = bias[first + v * WIDTH + lane];
        for (int r = 1; r < ROWS_AT_ONCE; r++)
            for (int v = 0; v < NV; v++) start.at[r][v] = start.at[0][v];
        for (int64_t row = 0; row < rows; row += ROWS_AT_ONCE) {
            const float *own[ROWS_AT_ONCE];
            for (int r = 0; r < ROWS_AT_ONCE; r++) own[r] = x + (row + r < rows ? row + r : rows - 1) * inputs;
            Tile<NV> tile = start;
            add_product<NV>(tile, own, inputs, columns);
            for (int r = 0; r < ROWS_AT_ONCE && row + r < rows; r++)
                for (int v = 0; v < NV; v++) {
                    const int64_t at = first + v * WIDTH;
                    store_some(out + (row + r) * outputs + at, tile.at[r][v], outputs - at);
                }
        }
    }
};

// A whole vector from and to anywhere. memcpy would take the way by the stack in some loops.
typedef float anywhere __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
inline vec load(const float *from) { return *reinterpret_cast<const anywhere *>(from); }
inline void store(float *to, vec x) { *reinterpret_cast<anywhere *>(to) = x; }

// sums[a][b] += the sum over rows of x[a * x_step + row * x_row] * y[row * y_step + b], for AT_ONCE x NV vectors in
// registers.
template <int AT_ONCE, int NV>
inline void outer(float *sums, int64_t step, const float *x, int64_t x_step, int64_t x_row, const float *y,
                  int64_t y_step, int64_t rows) {
    vec sum[AT_ONCE][NV];
    const float *own[AT_ONCE];
    UNROLL for (int a = 0; a < AT_ONCE; a++) {
        own[a] = x + a * x_step;
        UNROLL for (int b = 0; b < NV; b++) sum[a][b] = load(sums + a * step + b * WIDTH);
    }
    for (int64_t row = 0; row < rows; row++, y += y_step) {
        vec other[NV];
        UNROLL for (int b = 0; b < NV; b++) other[b] = load(y + b * WIDTH);
        UNROLL for (int a = 0; a < AT_ONCE; a++) {
            const vec by = splat(own[a][row * x_row]);
            UNROLL for (int b = 0; b < NV; b++) sum[a][b] = multiply_add(by, other[b], sum[a][b]);
        }
    }
    UNROLL for (int a = 0; a < AT_ONCE; a++)
        UNROLL for (int b = 0; b < NV; b++) store(sums + a * step + b * WIDTH, sum[a][b]);
}

template <int NV>
inline void outer_columns(float *sums, int64_t step, const float *x, int64_t x_step, int64_t x_row, int64_t inputs,
                          const float *y, int64_t y_step, int64_t rows) {
    int64_t a = 0;
    for (; a + OUTER <= inputs; a += OUTER)
        outer<OUTER, NV>(sums + a * step, step, x + a * x_step, x_step, x_row, y, y_step, rows);
    for (; a < inputs; a++) outer<1, NV>(sums + a * step, step, x + a * x_step, x_step, x_row, y, y_step, rows);
}

// The products of all columns of x and y, summed over rows and added to sums [inputs][step]: x has `inputs` numbers of a
// row, x_step apart, and rows are x_row apart; y has `step` numbers, whole vectors, and rows are y_step apart.
inline void add_outer(float *sums, const float *x, int64_t x_step, int64_t x_row, int64_t inputs, const float *y,
                      int64_t y_step, int64_t rows, int64_t step = 0) {
    step = step ? step : y_step;
    for (int64_t left = step / WIDTH; left > 0;) {
        const int64_t parts = (left + OUTER - 1) / OUTER, nv = (left + parts - 1) / parts;
        switch (nv) {
            case 1: outer_columns<1>(sums, step, x, x_step, x_row, inputs, y, y_step, rows); break;
            case 2: outer_columns<2>(sums, step, x, x_step, x_row, inputs, y, y_step, rows); break;
            case 3: outer_columns<3>(sums, step, x, x_step, x_row, inputs, y, y_step, rows); break;
#if defined(__AVX512F__)
            case 4: outer_columns<4>(sums, step, x, x_step, x_row, inputs, y, y_step, rows); break;
            default: outer_columns<5>(sums, step, x, x_step, x_row, inputs, y, y_step, rows);
#endif
        }
        left -= nv, sums += nv * WIDTH, y += nv * WIDTH;
    }
}

// x [rows][inputs], w as panels (matchloom_pack), bias [outputs] or null, out [rows][outputs].
inline void multiply(const float *x, int64_t rows, int64_t inputs, const float *w, int64_t outputs, const float *bias,
                     float *out) {
    const vec *columns = reinterpret_cast<const vec *>(w);
    for (int64_t first = 0; first < outputs; first += PANEL * WIDTH) {
        const int nv = panel_vecs(outputs, first);
        for_panel(nv, Product{x, bias, rows, inputs, outputs, out}, first, columns);
        columns += nv * inputs;
    }
}

}  // namespace
