// The spatial GRU of Match-SRNN, forward and backward, in float32, and forward in double for scores that must not
// depend on the batch (spatial_gru_double.cpp). layers/spatial_gru.py has the equations.
//
// Pairs are SIMD lanes: one call scans a group of up to 2 * WIDTH pairs, all in step, and every value below is a
// `vec` that holds the same quantity of WIDTH pairs (NV = 1 or 2 of them side by side). A cell is then a few small
// matrix products with scalar weights, and element-wise work. There is no mask: a pair that has ended computes on
// with interactions of 0, which nothing reads, and in the backward pass its gradient there is exactly 0.
//
// The forward pass keeps h alone, as [row][column][dimension][lane] with a border of zeros above and at the left
// (row 0, column 0). The backward pass computes the gates again from it.
//
// GCC's and clang's vector extensions do the rest, so that one source serves AVX-512, AVX2 and any other processor;
// setup.py compiles it once for each.

#include "vectors.h"

namespace {

// TILE outputs of a matrix product are summed in registers at once: 2 * TILE sums and a few operands must fit in
// the 32 registers of AVX-512, or in 16. SIDE x SIDE is the same for the gradient of the weights.
#if defined(__AVX512F__)
constexpr int TILE = 10, SIDE = 5;
#else
constexpr int TILE = 5, SIDE = 3;
#endif
constexpr int CHUNK = 10;  // cells between two visits to the sums of the weights' gradient

int tiles(int outputs) { return (outputs + TILE - 1) / TILE; }
size_t packed_vecs(int outputs, int inputs) { return (size_t(tiles(outputs)) * TILE * (inputs + 1) + WIDTH - 1) / WIDTH; }

// A weight matrix in the order in which `product` reads it: for each tile of outputs their biases, then for each
// input the weights of the TILE outputs. Missing outputs of the last tile are 0. `at(o, k)` is weight o of input k.
template <class At, class Bias>
const real *pack(vec *place, int outputs, int inputs, At at, Bias bias) {
    real *to = reinterpret_cast<real *>(place);
    for (int o = 0; o < tiles(outputs) * TILE; o += TILE) {
        for (int t = 0; t < TILE; t++) *to++ = o + t < outputs ? bias(o + t) : 0.0f;
        for (int k = 0; k < inputs; k++)
            for (int t = 0; t < TILE; t++) *to++ = o + t < outputs ? at(o + t, k) : 0.0f;
    }
    return reinterpret_cast<const real *>(place);
}

struct Piece {  // some of the inputs of a product
    const vec *x;
    int count;
};

// out[o] = bias[o] + sum over k of weights[o][k] * x[k], x in up to four pieces. Writes whole tiles.
template <int NV, int PIECES>
inline void product(const real *w, int outputs, const Piece (&pieces)[PIECES], vec *out) {
    for (int tile = tiles(outputs); tile > 0; tile--, out += TILE * NV) {
        vec sum[TILE][NV];
        UNROLL for (int t = 0; t < TILE; t++)
            UNROLL for (int v = 0; v < NV; v++) sum[t][v] = splat(w[t]);
        w += TILE;
        for (const Piece &piece : pieces) {
            const vec *x = piece.x;
            for (int k = piece.count; k > 0; k--, x += NV, w += TILE)
                UNROLL for (int t = 0; t < TILE; t++)
                    UNROLL for (int v = 0; v < NV; v++) sum[t][v] += w[t] * x[v];
        }
        UNROLL for (int t = 0; t < TILE; t++)
            UNROLL for (int v = 0; v < NV; v++) out[t * NV + v] = sum[t][v];
    }
}

// sum[a][b] += x[a] * y[b] over `cells` cells, for A x B of them in registers; lanes are added up at the very end.
template <int NV, int A, int B>
inline void outer_tile(vec *sums, int stride, const vec *x, int x_step, const vec *y, int y_step, int cells) {
    vec sum[A][B];
    UNROLL for (int a = 0; a < A; a++)
        UNROLL for (int b = 0; b < B; b++) sum[a][b] = sums[a * stride + b];
    for (; cells > 0; cells--, x += x_step, y += y_step)
        UNROLL for (int v = 0; v < NV; v++)
            UNROLL for (int b = 0; b < B; b++)
                UNROLL for (int a = 0; a < A; a++) sum[a][b] += x[a * NV + v] * y[b * NV + v];
    UNROLL for (int a = 0; a < A; a++)
        UNROLL for (int b = 0; b < B; b++) sums[a * stride + b] = sum[a][b];
}

template <int NV, int A>
inline void outer_rows(vec *sums, int stride, const vec *x, int x_step, const vec *y, int inputs, int y_step, int cells) {
    int b = 0;
    for (; b + SIDE <= inputs; b += SIDE)
        outer_tile<NV, A, SIDE>(sums + b, stride, x, x_step, y + b * NV, y_step, cells);
    for (; b < inputs; b++) outer_tile<NV, A, 1>(sums + b, stride, x, x_step, y + b * NV, y_step, cells);
}

template <int NV>
void outer(vec *sums, int stride, const vec *x, int outputs, int x_step, const vec *y, int inputs, int y_step, int cells) {
    int a = 0;
    for (; a + SIDE <= outputs; a += SIDE)
        outer_rows<NV, SIDE>(sums + a * stride, stride, x + a * NV, x_step, y, inputs, y_step, cells);
    for (; a < outputs; a++)
        outer_rows<NV, 1>(sums + a * stride, stride, x + a * NV, x_step, y, inputs, y_step, cells);
}

// What a call works on; matches kernels/native.py.
struct Task {
    int64_t channels;
    int64_t pair_step, channel_step, row_step;  // s has any order of pairs, channels and rows; columns are neighbours
    int64_t dimensions, reverse;           // d; whether scans go from (m, n) back to (1, 1)
    int64_t count;                         // pairs of this group, at most 2 * WIDTH
    const int64_t *pairs, *m, *n;          // which pairs; the sizes of all pairs
    const real *s;                        //
    const real *gates, *gates_bias;       // [7d][3d + c], [7d]: rows r_l r_t r_d z_i z_l z_t z_d, columns t l d s
    const real *candidate, *candidate_bias;  // [d][3d + c], [d]: columns l t d s
    real *h;                              // (M + 1) (N + 1) d lanes for this group's largest M and N; may be null
    real *ends;                           // [pair][d]: h where each scan ends
    const real *ends_gradient;            // [pair][d]
    real *s_gradient;                     // like s, all zeros; may be null
    real *weights_gradient;               // gates, gates_bias, candidate, candidate_bias of this group one by one
};

template <int NV>
class Group {
    static constexpr int LANES = NV * WIDTH;
    const Task &task;
    const int d, c, q, lanes_used;
    int M = 0, N = 0;     // the largest sizes in this group
    int cell;             // vecs of h in a cell
    const real *gates_packed = nullptr, *candidate_packed = nullptr;

    int m(int lane) const { return int(task.m[task.pairs[lane]]); }
    int n(int lane) const { return int(task.n[task.pairs[lane]]); }

    // Columns that row i must compute: those of the widest pair that is at least so long. Never more than row i - 1.
    int width(int i) const {
        int widest = 0;
        for (int lane = 0; lane < lanes_used; lane++)
            if (m(lane) > i && n(lane) > widest) widest = n(lane);
        return widest;
    }

    // Where cell (i, j) of a lane's scan lies in s or its gradient, channel 0.
    int64_t place(int lane, int i, int j) const {
        if (task.reverse) i = m(lane) - 1 - i, j = n(lane) - 1 - j;
        return task.pairs[lane] * task.pair_step + i * task.row_step + j;
    }

    // Row i of s, as [column][channel][lane]; 0 outside a pair's own grid.
    void gather(int i, int columns, vec *row) const {
        const int64_t step = task.reverse ? -1 : 1;
        memset(row, 0, sizeof(vec) * NV * c * columns);
        for (int k = 0; k < c; k++)  // channels outside: what one of them touches stays in the cache for all lanes
            for (int lane = 0; lane < lanes_used; lane++) {
                if (m(lane) <= i) continue;
                const real *from = task.s + place(lane, i, 0) + k * task.channel_step;
                real *to = reinterpret_cast<real *>(row) + k * LANES + lane;
                for (int j = n(lane); j > 0; j--, from += step, to += c * LANES) *to = *from;
            }
    }

    void scatter(int i, const vec *row) const {
        const int64_t step = task.reverse ? -1 : 1;
        for (int k = 0; k < c; k++)
            for (int lane = 0; lane < lanes_used; lane++) {
                if (m(lane) <= i) continue;
                real *to = task.s_gradient + place(lane, i, 0) + k * task.channel_step;
                const real *from = reinterpret_cast<const real *>(row) + k * LANES + lane;
                for (int j = n(lane); j > 0; j--, to += step, from += c * LANES) *to = *from;
            }
    }

    // One cell: the gates r_l r_t r_d z_i z_l z_t z_d, [r * h], h' and h (which may be null).
    struct Cell {
        vec *gates, *reset, *candidate;
    };

    void compute(const vec *top, const vec *left, const vec *corner, const vec *s, const Cell &at, vec *h) const {
        product<NV>(gates_packed, 7 * d, {Piece{top, d}, Piece{left, d}, Piece{corner, d}, Piece{s, c}}, at.gates);
        const int D = d * NV;
        const vec *const neighbours[3] = {left, top, corner};
        for (int p = 0; p < 3; p++)
            for (int k = 0; k < D; k++) {
                const vec r = reciprocal(1.0f + power_of_two(at.gates[p * D + k]));
                at.gates[p * D + k] = r;
                at.reset[p * D + k] = r * neighbours[p][k];
            }
        product<NV>(candidate_packed, d, {Piece{at.reset, 3 * d}, Piece{s, c}}, at.candidate);
        vec *z = at.gates + 3 * D;
        for (int k = 0; k < D; k++) {
            vec a = z[k], b = z[k + D], x = z[k + 2 * D], y = z[k + 3 * D];
            const vec most = greatest(greatest(a, b), greatest(x, y));
            a = power_of_two(a - most), b = power_of_two(b - most);
            x = power_of_two(x - most), y = power_of_two(y - most);
            const vec scale = reciprocal((a + b) + (x + y));
            z[k] = a *= scale, z[k + D] = b *= scale, z[k + 2 * D] = x *= scale, z[k + 3 * D] = y *= scale;
            const vec tanh = 1.0f - 2.0f * reciprocal(1.0f + power_of_two(at.candidate[k]));
            at.candidate[k] = tanh;
            if (h) h[k] = multiply_add(a, tanh, multiply_add(y, corner[k], multiply_add(x, top[k], b * left[k])));
        }
    }

    // With scaled weights, powers of two do: sigmoid(x) = 1 / (1 + 2^y) where y = -x log2(e), softmax is one of 2^y
    // where y = x log2(e), tanh(x) = 1 - 2 / (1 + 2^y) where y = 2x log2(e).
    void pack_forward(Scratch &scratch) {
        const real log2e = real(1.4426950408889634);
        const auto scale = [=](int o) { return o < 3 * d ? -log2e : log2e; };
        gates_packed = pack(
            scratch.take(packed_vecs(7 * d, q)), 7 * d, q, [=](int o, int k) { return scale(o) * task.gates[o * q + k]; },
            [=](int o) { return scale(o) * task.gates_bias[o]; });
        candidate_packed = pack(
            scratch.take(packed_vecs(d, q)), d, q, [=](int o, int k) { return 2 * log2e * task.candidate[o * q + k]; },
            [=](int o) { return 2 * log2e * task.candidate_bias[o]; });
    }
    size_t forward_vecs() const { return packed_vecs(7 * d, q) + packed_vecs(d, q); }

    static real *lane_of(vec *values, int k, int lane) { return reinterpret_cast<real *>(values) + k * LANES + lane; }

  public:
    explicit Group(const Task &task)
        : task(task), d(int(task.dimensions)), c(int(task.channels)), q(3 * d + c), lanes_used(int(task.count)) {
        for (int lane = 0; lane < lanes_used; lane++) {
            if (m(lane) > M) M = m(lane);
            if (n(lane) > N) N = n(lane);
        }
        cell = d * NV;
    }

    int forward() {
        const size_t row = size_t(N + 1) * cell;
        const size_t padded = size_t(TILE) * NV;  // products write whole tiles
        Scratch scratch(forward_vecs() + (task.h ? 0 : 2 * row) + size_t(N) * c * NV + 11 * size_t(cell) + 2 * padded);
        if (scratch.failed()) return 1;
        pack_forward(scratch);
        vec *h = task.h ? reinterpret_cast<vec *>(task.h) : scratch.take(2 * row);
        vec *s = scratch.take(size_t(N) * c * NV);
        const Cell at{scratch.take(7 * size_t(cell) + padded), scratch.take(3 * size_t(cell)), scratch.take(cell + padded)};
        memset(h, 0, row * sizeof(vec));
        for (int i = 0; i < M; i++) {
            const vec *above = h + (task.h ? i : i & 1) * row;
            vec *here = h + (task.h ? i + 1 : (i + 1) & 1) * row;
            memset(here, 0, cell * sizeof(vec));
            const int columns = width(i);
            gather(i, columns, s);
            for (int j = 0; j < columns; j++, above += cell, here += cell)
                compute(above + cell, here, above, s + size_t(j) * c * NV, at, here + cell);
            here -= size_t(columns) * cell;
            for (int lane = 0; lane < lanes_used; lane++)
                if (m(lane) == i + 1)
                    for (int k = 0; k < d; k++)
                        task.ends[task.pairs[lane] * d + k] = *lane_of(here + size_t(n(lane)) * cell, k, lane);
        }
        return 0;
    }

    int backward() {
        const size_t row = size_t(N + 1) * cell, padded = size_t(TILE) * NV;
        const size_t gates_vecs = 7 * size_t(cell) + padded, reset_vecs = 3 * size_t(cell);
        const size_t candidate_vecs = cell + padded, inputs_vecs = size_t(q) * NV + padded;
        const size_t sums = 8 * size_t(d) * q + 8 * size_t(d);
        Scratch scratch(forward_vecs() + packed_vecs(q, 7 * d) + packed_vecs(q, d) + 2 * row + 2 * size_t(N) * c * NV +
                        CHUNK * (gates_vecs + reset_vecs + candidate_vecs) + 2 * inputs_vecs + sums);
        if (scratch.failed()) return 1;
        pack_forward(scratch);
        const auto none = [](int) { return 0.0f; };
        const real *gates_turned = pack(
            scratch.take(packed_vecs(q, 7 * d)), q, 7 * d, [=](int o, int k) { return task.gates[k * q + o]; }, none);
        const real *candidate_turned = pack(
            scratch.take(packed_vecs(q, d)), q, d, [=](int o, int k) { return task.candidate[k * q + o]; }, none);

        // Gradients of h of this row and of the row above, with the border; s of this row and its gradient.
        vec *here_gradient = scratch.take(row), *above_gradient = scratch.take(row);
        vec *s = scratch.take(size_t(N) * c * NV), *s_gradient = scratch.take(size_t(N) * c * NV);
        // The cells of a chunk: gradients of the gates before their sigmoid or softmax, [r * h], gradient before tanh.
        vec *gates = scratch.take(CHUNK * gates_vecs), *reset = scratch.take(CHUNK * reset_vecs);
        vec *candidate = scratch.take(CHUNK * candidate_vecs);
        vec *by_candidate = scratch.take(inputs_vecs), *by_gates = scratch.take(inputs_vecs);
        vec *gates_sums = scratch.take(7 * size_t(d) * q), *gates_bias_sums = scratch.take(7 * size_t(d));
        vec *candidate_sums = scratch.take(size_t(d) * q), *candidate_bias_sums = scratch.take(d);

        const int D = cell;
        for (int i = M - 1; i >= 0; i--) {
            const vec *above = reinterpret_cast<const vec *>(task.h) + size_t(i) * row, *here = above + row;
            const int columns = width(i);
            gather(i, columns, s);
            for (int lane = 0; lane < lanes_used; lane++)
                if (m(lane) == i + 1)
                    for (int k = 0; k < d; k++)
                        *lane_of(here_gradient + size_t(n(lane)) * cell, k, lane) += task.ends_gradient[task.pairs[lane] * d + k];
            for (int end = columns; end > 0; end -= CHUNK) {
                const int begin = end > CHUNK ? end - CHUNK : 0;
                for (int j = end - 1; j >= begin; j--) {
                    // Cell (i, j) stands at column j + 1 of `here`; the border is column 0.
                    const vec *left = here + size_t(j) * cell, *corner = above + size_t(j) * cell, *top = corner + cell;
                    const vec *from[3] = {left, top, corner};
                    vec *to[3] = {here_gradient + size_t(j) * cell, above_gradient + size_t(j + 1) * cell,
                                  above_gradient + size_t(j) * cell};
                    const vec *dh = here_gradient + size_t(j + 1) * cell, *h = here + size_t(j + 1) * cell;
                    const size_t slot = j - begin;
                    const Cell at{gates + slot * gates_vecs, reset + slot * reset_vecs, candidate + slot * candidate_vecs};
                    compute(top, left, corner, s + size_t(j) * c * NV, at, nullptr);
                    vec *r = at.gates, *z = at.gates + 3 * D;
                    for (int k = 0; k < D; k++) {
                        // Softmax: z_p gets z_p (g_p - sum of z g) with g_p = dh * x_p; the sum is dh * h.
                        const vec z_i = z[k] * dh[k], tanh = at.candidate[k];
                        at.candidate[k] = z_i * (1.0f - tanh * tanh);
                        z[k] = z_i * (tanh - h[k]);
                        UNROLL for (int p = 0; p < 3; p++) {
                            const vec z_p = z[(p + 1) * D + k] * dh[k];
                            to[p][k] += z_p;
                            z[(p + 1) * D + k] = z_p * (from[p][k] - h[k]);
                        }
                    }
                    product<NV>(candidate_turned, q, {Piece{at.candidate, d}}, by_candidate);
                    UNROLL for (int p = 0; p < 3; p++)
                        for (int k = 0; k < D; k++) {
                            const vec r_p = r[p * D + k], back = by_candidate[p * D + k] * r_p;
                            to[p][k] += back;
                            r[p * D + k] = back * from[p][k] * (1.0f - r_p);
                        }
                    product<NV>(gates_turned, q, {Piece{at.gates, 7 * d}}, by_gates);
                    for (int k = 0; k < D; k++) {  // the gates see top, left, corner in this order
                        to[1][k] += by_gates[k];
                        to[0][k] += by_gates[D + k];
                        to[2][k] += by_gates[2 * D + k];
                    }
                    for (int k = 0; k < c * NV; k++)
                        s_gradient[size_t(j) * c * NV + k] = by_candidate[3 * D + k] + by_gates[3 * D + k];
                    for (int k = 0; k < 7 * d; k++)
                        UNROLL for (int v = 0; v < NV; v++) gates_bias_sums[k] += at.gates[k * NV + v];
                    for (int k = 0; k < d; k++)
                        UNROLL for (int v = 0; v < NV; v++) candidate_bias_sums[k] += at.candidate[k * NV + v];
                }
                const int cells = end - begin, S = c * NV;
                const vec *inputs[4] = {above + size_t(begin + 1) * cell, here + size_t(begin) * cell,
                                        above + size_t(begin) * cell, s + size_t(begin) * S};
                for (int p = 0; p < 4; p++)
                    outer<NV>(gates_sums + p * d, q, gates, 7 * d, int(gates_vecs), inputs[p], p < 3 ? d : c,
                              p < 3 ? D : S, cells);
                outer<NV>(candidate_sums, q, candidate, d, int(candidate_vecs), reset, 3 * d, int(reset_vecs), cells);
                outer<NV>(candidate_sums + 3 * d, q, candidate, d, int(candidate_vecs), inputs[3], c, S, cells);
            }
            if (task.s_gradient) scatter(i, s_gradient);
            vec *done = here_gradient;  // the row above is next, and its upper row starts at 0
            here_gradient = above_gradient, above_gradient = done;
            memset(above_gradient, 0, row * sizeof(vec));
        }
        real *out = task.weights_gradient;
        for (size_t k = 0; k < sums; k++) *out++ = total(gates_sums[k]);  // all four lie one behind the other
        return 0;
    }
};

}  // namespace

extern "C" {

#if defined(MATCHLOOM_DOUBLE)
int64_t matchloom_lanes_double(int64_t count) { return count > WIDTH ? 2 * WIDTH : WIDTH; }

int matchloom_forward_double(const void *given) {
    const Task &task = *static_cast<const Task *>(given);
    return task.count > WIDTH ? Group<2>(task).forward() : Group<1>(task).forward();
}
#else
// So that a library left over from another version is noticed.
int64_t matchloom_task_bytes() { return sizeof(Task); }

// Lanes of a group of so many pairs.
int64_t matchloom_lanes(int64_t count) { return count > WIDTH ? 2 * WIDTH : WIDTH; }

// 0, or 1 if memory ran out.
int matchloom_forward(const Task *task) {
    return task->count > WIDTH ? Group<2>(*task).forward() : Group<1>(*task).forward();
}

int matchloom_backward(const Task *task) {
    return task->count > WIDTH ? Group<2>(*task).backward() : Group<1>(*task).backward();
}

// Whether this processor (and its operating system) can run what this file was compiled for elsewhere: 2 for AVX-512,
// 1 for AVX2, 0 otherwise. Asked of the plain build.
int matchloom_processor() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}
#endif
}
