// Convolutions over maps with their channels last, and tanh: layers/conv.py says what is asked. Every number is one sum
// in a fixed order (product.h): it depends on its own window alone, to the last bit.

#include "product.h"

namespace {

struct Maps {
    const float *x;        // with zeros around: [rows][step][channels]
    int64_t step, channels;
    int64_t height, width;  // of the map that is made, of which only own_height x own_width are wanted
    int64_t own_height, own_width;
    int64_t kernel_height, kernel_width;
    int64_t outputs;
    const float *bias;
    float *out;             // [height][width][outputs]

    template <int NV>
    void panel(int64_t first, const vec *columns) const {
        vec start[NV];
        for (int v = 0; v < NV; v++) {
            const int64_t at = first + v * WIDTH;
            start[v] = load_some(bias + at, outputs - at);
        }
        const int64_t cells = own_height * own_width, count = kernel_width * channels;
        for (int64_t cell = 0; cell < cells; cell += ROWS_AT_ONCE) {
            const float *rows[ROWS_AT_ONCE];
            int64_t to[ROWS_AT_ONCE];
            Tile<NV> tile;
            for (int r = 0; r < ROWS_AT_ONCE; r++) {
                const int64_t own = cell + r < cells ? cell + r : cells - 1, y = own / own_width, left = own % own_width;
                rows[r] = x + (y * step + left) * channels;
                to[r] = (y * width + left) * outputs + first;
                for (int v = 0; v < NV; v++) tile.at[r][v] = start[v];
            }
            for (int64_t ky = 0; ky < kernel_height; ky++) {
                add_product<NV>(tile, rows, count, columns + ky * count * NV);
                for (int r = 0; r < ROWS_AT_ONCE; r++) rows[r] += step * channels;
            }
            for (int r = 0; r < ROWS_AT_ONCE && cell + r < cells; r++)
                for (int v = 0; v < NV; v++) store_some(out + to[r] + v * WIDTH, tile.at[r][v], outputs - first - v * WIDTH);
        }
    }
};

}  // namespace

extern "C" {

// x [maps][height][width][channels], of which map n has heights[n] x widths[n] cells; what lies outside counts as 0.
// w [kernel_height][kernel_width][channels][outputs]; `above` and `before` zeros stand before a map's first row and
// column. out [maps][height][width][outputs], 0 outside. 0, or 1 if memory ran out.
int matchloom_convolve(const float *x, int64_t maps, int64_t height, int64_t width, int64_t channels,
                       const int64_t *heights, const int64_t *widths, const float *w, const float *bias,
                       int64_t kernel_height, int64_t kernel_width, int64_t above, int64_t before, int64_t outputs,
                       float *out) {
    const int64_t inputs = kernel_height * kernel_width * channels, panels = whole_vecs(outputs);
    const int64_t step = width + kernel_width - 1, room = (height + kernel_height - 1) * step * channels;
    Scratch scratch(panels * inputs + whole_vecs(room) + 1);
    if (scratch.failed()) return 1;
    vec *columns = scratch.take(panels * inputs), *to = columns;
    float *around = reinterpret_cast<float *>(scratch.take(whole_vecs(room)));
    for (int64_t first = 0; first < outputs; first += PANEL * WIDTH) {
        const int nv = panel_vecs(outputs, first);
        pack_panel(w, inputs, outputs, first, nv, to);
        to += nv * inputs;
    }
    for (int64_t n = 0; n < maps; n++) {
        const int64_t h = heights[n], own = widths[n];
        memset(around, 0, room * sizeof(float));
        for (int64_t y = 0; y < h; y++)
            memcpy(around + ((y + above) * step + before) * channels, x + (n * height + y) * width * channels,
                   own * channels * sizeof(float));
        float *place = out + n * height * width * outputs;
        memset(place, 0, height * width * outputs * sizeof(float));
        const Maps map{around, step, channels, height, width, h, own, kernel_height, kernel_width, outputs, bias, place};
        to = columns;
        for (int64_t first = 0; first < outputs; first += PANEL * WIDTH) {
            const int nv = panel_vecs(outputs, first);
            for_panel(nv, map, first, to);
            to += nv * inputs;
        }
    }
    return 0;
}

// tanh of every number, alike wherever it stands.
void matchloom_tanh(const float *x, int64_t count, float *out) {
    for (int64_t k = 0; k < count; k += WIDTH) {
        store_some(out + k, tanh_of(load_some(x + k, count - k) * (2 * LOG2E)), count - k);
    }
}
}
