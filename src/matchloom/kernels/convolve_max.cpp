// Convolutions of which only the largest number of each cell of a grid is kept, and that where it is above 0; forward and
// backward. kernels/convolve_max.py says what is asked. No convolved map is written: a row's numbers are made some maps
// and two vectors of columns at a time in registers, and met there with the largest so far.
//
// Every number is one sum over channels, rows and columns of its window in this order, each step rounded once where the
// processor can: a map's result depends on that map alone, to the last bit. Few cells have a gradient, so that the
// backward pass walks through them and not through the maps.

#include <limits>

#include "transpose.h"

namespace {

// What a call works on, some maps; matches kernels/native.py.
struct ConvolveMaxTask {
    int64_t begin, end;                                    // maps of this task
    int64_t channels, height, width;                       // of x: C, H, W
    int64_t map_step, channel_step, row_step;              // numbers between two of x
    int64_t outputs, kernel_height, kernel_width;          // O, and the window
    int64_t above, before;                                 // zeros before a map's first row and column
    int64_t rows, columns;                                 // of the grid, whose cells are squares of `window` cells of the
    int64_t window;                                        // map, or if that is 0 as many for each, as far as it goes
    const int64_t *heights, *widths;                       // own cells of each map, at least 1; outside counts as 0
    const float *x;                                        // [map][C][H][W]
    const float *w, *bias;                                 // [O][C][window], [O]
    float *out;                                            // [map][O][rows][columns]
    int32_t *places;  // like out: y * W + x of what was kept; -1 where nothing was above 0. The forward pass: may be null
    const float *out_gradient;  // like out
    float *x_gradient;          // [map][C][H][W], 0 outside; or null
    float *w_gradient;          // [O][C][window], of these maps together
    float *bias_gradient;       // [O]
};

#if defined(__AVX512F__)
constexpr int MAPS = 8;  // at once, for COLUMNS vectors
#else
constexpr int MAPS = 4;
#endif
constexpr int COLUMNS = 2;

int64_t vecs_of(int64_t numbers) { return (numbers + WIDTH - 1) / WIDTH; }
vec load(const float *from) {
    vec x;
    memcpy(&x, from, sizeof x);
    return x;
}
void store(float *to, vec x) { memcpy(to, &x, sizeof x); }

class Maps {
    const ConvolveMaxTask &task;
    const int64_t C, O, KH, KW;
    const int64_t step, plane;  // of the map with zeros around: numbers of a row and of a channel
    float *around = nullptr;
    // Of MAPS maps the largest of each column over a cell's rows, and y * W of where it stands; the same with maps as
    // lanes; and what is kept of a row of cells.
    vec *best = nullptr, *turned = nullptr, *turned_rows = nullptr, *values = nullptr;
    ivec *row = nullptr, *found = nullptr;

    int64_t blocks() const { return (O + MAPS - 1) / MAPS; }
    int64_t whole_window() const { return vecs_of(KW) * WIDTH; }  // numbers of a window's row, in whole vectors

    void surround(int64_t n) const {
        memset(around, 0, C * plane * sizeof(float));
        for (int64_t c = 0; c < C; c++)
            for (int64_t y = 0; y < task.heights[n]; y++)
                memcpy(around + c * plane + (y + task.above) * step + task.before,
                       task.x + n * task.map_step + c * task.channel_step + y * task.row_step,
                       task.widths[n] * sizeof(float));
    }

    // Weights as [block of maps][channel][window][MAPS], and biases; 0 for maps that only fill up the last block.
    void pack(float *w, float *bias) const {
        const int64_t window = C * KH * KW;
        for (int64_t o = 0; o < blocks() * MAPS; o++) {
            for (int64_t k = 0; k < window; k++)
                w[(o / MAPS * window + k) * MAPS + o % MAPS] = o < O ? task.w[o * window + k] : 0.0f;
            bias[o] = o < O ? task.bias[o] : 0.0f;
        }
    }

    // The numbers of MAPS maps whose windows begin at each of these places and the next WIDTH - 1.
    void numbers(const float *const *from, const float *w, const float *bias, vec (&sum)[MAPS][COLUMNS]) const {
        vec own[MAPS][COLUMNS];
        UNROLL for (int m = 0; m < MAPS; m++)
            UNROLL for (int v = 0; v < COLUMNS; v++) own[m][v] = splat(bias[m]);
        for (int64_t c = 0; c < C; c++)
            for (int64_t ky = 0; ky < KH; ky++) {
                const float *at[COLUMNS];
                UNROLL for (int v = 0; v < COLUMNS; v++) at[v] = from[v] + c * plane + ky * step;
                for (int64_t kx = 0; kx < KW; kx++, w += MAPS) {
                    vec x[COLUMNS];
                    UNROLL for (int v = 0; v < COLUMNS; v++) x[v] = load(at[v] + kx);
                    UNROLL for (int m = 0; m < MAPS; m++)
                        UNROLL for (int v = 0; v < COLUMNS; v++) own[m][v] = multiply_add(splat(w[m]), x[v], own[m][v]);
                }
            }
        UNROLL for (int m = 0; m < MAPS; m++)
            UNROLL for (int v = 0; v < COLUMNS; v++) sum[m][v] = own[m][v];
    }

    // The first and the last of `own` rows, or columns, that cell a of `count` has: floor(a * own / count) up to
    // floor((a + 1) * own / count), but at least one.
    struct Span {
        int64_t first, last;
        bool operator==(const Span &other) const { return first == other.first && last == other.last; }
    };
    Span span(int64_t a, int64_t own, int64_t count) const {
        const int64_t first = task.window ? a * task.window : a * own / count;
        const int64_t last = task.window ? first + task.window - 1 : (a + 1) * own / count - 1;
        return {first < own ? first : own - 1, last < first ? first : last < own ? last : own - 1};
    }

    // A new candidate for the largest. What is NaN stays.
    static void keep(vec value, ivec place, vec *best, ivec *at) {
        const ivec more = ~((value <= *best) | (*best != *best));
        *best = more ? value : *best, *at = more ? place : *at;
    }

    // From columns to cells: the largest of each map's columns, with maps as lanes.
    void cells(int64_t n, int64_t block, int64_t a, int64_t across) const {
        const float *from[WIDTH], *rows[WIDTH];
        for (int lane = 0; lane < WIDTH; lane++) {
            const int64_t m = lane < MAPS ? lane : 0;
            from[lane] = reinterpret_cast<const float *>(best + m * across);
            rows[lane] = reinterpret_cast<const float *>(row + m * across);
        }
        to_lanes<1>(from, int(task.widths[n]), turned);
        if (task.places) to_lanes<1>(rows, int(task.widths[n]), turned_rows);
        for (int64_t b = 0; b < task.columns; b++) {
            const Span own = span(b, task.widths[n], task.columns);
            vec value = turned[own.first];
            ivec place = (ivec)turned_rows[own.first] + int32_t(own.first);
            for (int64_t x = own.first + 1; x <= own.last; x++)
                keep(turned[x], (ivec)turned_rows[x] + int32_t(x), &value, &place);
            values[b] = value <= 0.0f ? vec{} : value;
            found[b] = value <= 0.0f ? ivec{} - 1 : place;
        }
        for (int64_t o = block * MAPS; o < O && o < (block + 1) * MAPS; o++) {
            const int64_t at = ((n * O + o) * task.rows + a) * task.columns, m = o - block * MAPS;
            for (int64_t b = 0; b < task.columns; b++) {
                task.out[at + b] = reinterpret_cast<const float *>(values + b)[m];
                if (task.places) task.places[at + b] = reinterpret_cast<const int32_t *>(found + b)[m];
            }
        }
    }

    void forward_one(int64_t n, const float *w, const float *bias) const {
        const int64_t across = vecs_of(task.widths[n]), window = C * KH * KW * MAPS;
        surround(n);
        for (int64_t a = 0; a < task.rows; a++) {
            const Span own = span(a, task.heights[n], task.rows);
            if (a && own == span(a - 1, task.heights[n], task.rows)) {  // a row that is lent to several cells
                repeat(n, a);
                continue;
            }
            const int64_t units = (own.last - own.first + 1) * across;
            for (int64_t block = 0; block < blocks(); block++) {
                for (int64_t k = 0; k < MAPS * across; k++)
                    best[k] = splat(-std::numeric_limits<float>::infinity()), row[k] = ivec{} + int32_t(own.first * task.width);
                for (int64_t unit = 0; unit < units; unit += COLUMNS) {
                    const float *from[COLUMNS];
                    vec sum[MAPS][COLUMNS];
                    for (int v = 0; v < COLUMNS; v++) {
                        const int64_t at = unit + v < units ? unit + v : unit;
                        from[v] = around + (own.first + at / across) * step + at % across * WIDTH;
                    }
                    numbers(from, w + block * window, bias + block * MAPS, sum);
                    for (int v = 0; v < COLUMNS && unit + v < units; v++) {
                        const int64_t at = (unit + v) % across;
                        const ivec y = ivec{} + int32_t((own.first + (unit + v) / across) * task.width);
                        for (int m = 0; m < MAPS; m++) keep(sum[m][v], y, best + m * across + at, row + m * across + at);
                    }
                }
                cells(n, block, a, across);
            }
        }
    }

    void repeat(int64_t n, int64_t a) const {
        for (int64_t o = 0; o < O; o++) {
            const int64_t at = ((n * O + o) * task.rows + a) * task.columns;
            memcpy(task.out + at, task.out + at - task.columns, task.columns * sizeof(float));
            if (task.places) memcpy(task.places + at, task.places + at - task.columns, task.columns * sizeof(int32_t));
        }
    }

    // One output of one map: what its cells add to the gradients of the weights and of x. w and its gradient in rows of
    // whole vectors; behind a window's own columns stands 0 in w, and what comes there to its gradient is left out.
    float backward_one(int64_t n, int64_t o, const float *w, float *of_w, float *of_x) const {
        const int64_t count = task.rows * task.columns, first = (n * O + o) * count, wide = whole_window();
        float of_bias = 0;
        for (int64_t cell = first; cell < first + count; cell++) {
            const int32_t place = task.places[cell];
            const float up = task.out_gradient[cell];
            if (place < 0 || up == 0.0f) continue;
            const int64_t at = place / task.width * step + place % task.width;
            of_bias += up;
            for (int64_t c = 0; c < C; c++)
                for (int64_t ky = 0; ky < KH; ky++)
                    for (int64_t kx = 0; kx < wide; kx += WIDTH) {
                        const int64_t x = c * plane + at + ky * step + kx, own = (c * KH + ky) * wide + kx;
                        store(of_w + own, multiply_add(splat(up), load(around + x), load(of_w + own)));
                        if (of_x) store(of_x + x, multiply_add(splat(up), load(w + own), load(of_x + x)));
                    }
        }
        return of_bias;
    }

    void write_gradient(int64_t n, const float *of_x) const {
        float *to = task.x_gradient + n * C * task.height * task.width;
        memset(to, 0, C * task.height * task.width * sizeof(float));
        for (int64_t c = 0; c < C; c++)
            for (int64_t y = 0; y < task.heights[n]; y++)
                memcpy(to + (c * task.height + y) * task.width,
                       of_x + c * plane + (y + task.above) * step + task.before, task.widths[n] * sizeof(float));
    }

  public:
    explicit Maps(const ConvolveMaxTask &task)
        : task(task), C(task.channels), O(task.outputs), KH(task.kernel_height), KW(task.kernel_width),
          step((vecs_of(task.width) + vecs_of(KW)) * WIDTH), plane((task.height + KH - 1) * step) {}

    int forward() {
        const int64_t window = C * KH * KW, across = vecs_of(task.width), all = blocks() * MAPS;
        Scratch scratch(C * plane / WIDTH + vecs_of(all * window) + vecs_of(all) + 2 * MAPS * across + 2 * task.width +
                        2 * task.columns);
        if (scratch.failed()) return 1;
        around = reinterpret_cast<float *>(scratch.take(C * plane / WIDTH));
        float *w = reinterpret_cast<float *>(scratch.take(vecs_of(all * window)));
        float *bias = reinterpret_cast<float *>(scratch.take(vecs_of(all)));
        best = scratch.take(MAPS * across), row = reinterpret_cast<ivec *>(scratch.take(MAPS * across));
        turned = scratch.take(task.width), turned_rows = scratch.take(task.width);
        values = scratch.take(task.columns), found = reinterpret_cast<ivec *>(scratch.take(task.columns));
        pack(w, bias);
        for (int64_t n = task.begin; n < task.end; n++) forward_one(n, w, bias);
        return 0;
    }

    int backward() {
        const int64_t wide = whole_window(), rows = O * C * KH, room = C * plane / WIDTH;
        Scratch scratch(2 * room + 2 * rows * wide / WIDTH);
        if (scratch.failed()) return 1;
        around = reinterpret_cast<float *>(scratch.take(room));
        float *of_x = task.x_gradient ? reinterpret_cast<float *>(scratch.take(room)) : nullptr;
        float *w = reinterpret_cast<float *>(scratch.take(rows * wide / WIDTH));
        float *of_w = reinterpret_cast<float *>(scratch.take(rows * wide / WIDTH));
        for (int64_t k = 0; k < rows; k++) memcpy(w + k * wide, task.w + k * KW, KW * sizeof(float));
        for (int64_t o = 0; o < O; o++) task.bias_gradient[o] = 0;
        for (int64_t n = task.begin; n < task.end; n++) {
            surround(n);
            if (of_x) memset(of_x, 0, room * sizeof(vec));
            for (int64_t o = 0; o < O; o++)
                task.bias_gradient[o] += backward_one(n, o, w + o * C * KH * wide, of_w + o * C * KH * wide, of_x);
            if (of_x) write_gradient(n, of_x);
        }
        for (int64_t k = 0; k < rows; k++) memcpy(task.w_gradient + k * KW, of_w + k * wide, KW * sizeof(float));
        return 0;
    }
};

}  // namespace

extern "C" {

int64_t matchloom_convolve_max_task_bytes() { return sizeof(ConvolveMaxTask); }

// 0, or 1 if memory ran out.
int matchloom_convolve_max_forward(const ConvolveMaxTask *task) { return Maps(*task).forward(); }
int matchloom_convolve_max_backward(const ConvolveMaxTask *task) { return Maps(*task).backward(); }
}
