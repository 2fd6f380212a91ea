// The layers of a BERT-like transformer over texts laid end to end, in float32: encoders/transformer.py has the
// equations. No padding is read. Products are row by row one sum in a fixed order (product.h), attention works on one
// text and head, and all else on one row: a text's numbers depend on the text alone, to the last bit.

#include <cmath>

#include "product.h"

namespace {

// What a layer's weights are; matches kernels/transformer.py. Matrices as panels (matchloom_pack).
struct LayerWeights {
    const float *qkv, *qkv_bias;  // [D][3D]: of queries, keys, values, each [heads][D / heads]
    const float *out, *out_bias;  // [D][D]
    const float *up, *up_bias;    // [D][inner]
    const float *down, *down_bias;
    const float *first, *first_bias, *second, *second_bias;  // [D]: of the two normalisations
};

// What a call works on, some texts; matches kernels/transformer.py.
struct TransformerTask {
    int64_t size, heads, inner, layers;  // D
    int64_t tanh;                        // whether GELU is approximated by tanh
    double epsilon;                      // of the normalisations
    int64_t texts;
    const int64_t *starts;               // texts + 1: the rows where texts begin
    const LayerWeights *weights;         // [layers]
    const float *norm, *norm_bias;       // [D]: of what comes in
    float *x;                            // [rows][D], in and out
};

// x * Phi(x), by log2(1 - Phi(|x|)) as a polynomial, fitted for least error of the whole (2.4e-7).
constexpr float TAIL[] = {-4.579679115978772e-08f, 1.2081565978911307e-06f,  -1.388949300902546e-05f,
                          8.92910103304922e-05f,   -0.0003115391792541383f,  4.4853639206010156e-05f,
                          0.00691312684494851f,    -0.052429693474606714f,   -0.4592217809997049f,
                          -1.1511043283656957f,    -0.99999999643863f};
inline vec gelu(vec x) {
    const vec all = greatest(splat(-6.0f), least(splat(6.0f), x)), a = all < vec{} ? -all : all;
    vec p = splat(TAIL[0]);
    UNROLL for (size_t k = 1; k < sizeof(TAIL) / sizeof(float); k++) p = multiply_add(p, a, splat(TAIL[k]));
    const vec tail = x * power_of_two(p);
    return x > vec{} ? x - tail : tail;
}

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
inline vec gelu_by_tanh(vec x) {
    const vec inner = multiply_add(x * x * x, splat(0.044715f), x) * 0.7978845608f;
    return 0.5f * x * (1.0f + tanh_of(inner * (2 * LOG2E)));
}

class Layers {
    const TransformerTask &task;
    const int64_t D, d, rows;
    int64_t longest = 0;
    float *wide = nullptr, *seen = nullptr, *scores = nullptr, *zeros = nullptr;
    vec *keys = nullptr, *values = nullptr;

    int64_t scores_step() const { return whole_vecs(longest) * WIDTH; }

    // x = norm(x + more); without `more` of x itself.
    void normalize(const float *more, const float *weight, const float *bias) const {
        float *x = task.x;
        for (int64_t row = 0; row < rows; row++, x += D) {
            vec sum{}, squares{};
            for (int64_t k = 0; k < D; k += WIDTH) {
                vec own = load_some(x + k, D - k);
                if (more) own = own + load_some(more + row * D + k, D - k);
                store_some(x + k, own, D - k);
                sum = sum + own;
            }
            const float mean = total(sum) / float(D);
            for (int64_t k = 0; k < D; k += WIDTH) {
                vec own = load_some(x + k, D - k) - mean;
                if (D - k < WIDTH) own = load_some(reinterpret_cast<const float *>(&own), D - k);
                squares = multiply_add(own, own, squares);
            }
            const float by = float(1.0 / std::sqrt(double(total(squares) / float(D)) + task.epsilon));
            for (int64_t k = 0; k < D; k += WIDTH) {
                const vec own = (load_some(x + k, D - k) - mean) * by;
                store_some(x + k, multiply_add(own, load_some(weight + k, D - k), load_some(bias + k, D - k)), D - k);
            }
        }
    }

    void activate(float *x, int64_t count) const {
        for (int64_t k = 0; k < count; k += WIDTH) {
            const vec own = load_some(x + k, count - k);
            store_some(x + k, task.tanh ? gelu_by_tanh(own) : gelu(own), count - k);
        }
    }

    struct PackKeys {
        const Layers &own;
        const float *from;  // the keys of a text and head, 3D apart
        int64_t P;
        template <int NV>
        void panel(int64_t first, vec *to) const {
            const float *rows[NV * WIDTH];
            for (int64_t n = 0; n < NV * WIDTH; n++) rows[n] = first + n < P ? from + (first + n) * 3 * own.D : own.zeros;
            to_lanes<NV>(rows, int(own.d), to);
        }
    };

    // Some queries with a panel of keys.
    struct Compare {
        const Layers &own;
        const float *const *queries;
        template <int NV>
        void panel(int64_t first, const vec *columns) const {
            Tile<NV> tile{};
            add_product<NV>(tile, queries, own.d, columns);
            for (int r = 0; r < ROWS_AT_ONCE; r++)
                memcpy(own.scores + r * own.scores_step() + first, tile.at[r], sizeof tile.at[r]);
        }
    };

    // What they see: the mean of the values, by their weights.
    struct Mean {
        const Layers &own;
        const float *const *weights;
        const float *sums;
        int64_t P;
        float *to;  // of the first query
        int count;
        template <int NV>
        void panel(int64_t first, const vec *columns) const {
            Tile<NV> tile{};
            add_product<NV>(tile, weights, P, columns);
            for (int r = 0; r < count; r++)
                for (int v = 0; v < NV; v++) {
                    const int64_t at = first + v * WIDTH;
                    store_some(to + r * own.D + at, tile.at[r][v] / sums[r], own.d - at);
                }
        }
    };

    // The scores of one query as weights 2^(s - the largest), and their sum.
    float weigh(float *s, int64_t P) const {
        ivec numbers;
        for (int lane = 0; lane < WIDTH; lane++) numbers[lane] = lane;
        vec *own = reinterpret_cast<vec *>(s), most = splat(s[0]), sum{};
        for (int64_t k = 0; k < P; k += WIDTH) {
            const vec x = own[k / WIDTH];
            most = greatest(most, numbers < int32_t(P - k) ? x : most);
        }
        float largest = most[0];
        for (int lane = 1; lane < WIDTH; lane++) largest = most[lane] > largest ? most[lane] : largest;
        const float scale = LOG2E / std::sqrt(float(d));
        for (int64_t k = 0; k < P; k += WIDTH) {
            const vec x = power_of_two((own[k / WIDTH] - largest) * scale);
            own[k / WIDTH] = numbers < int32_t(P - k) ? x : vec{};
            sum = sum + own[k / WIDTH];
        }
        return total(sum);
    }

    // One text and head: its queries, keys and values stand in `wide`.
    void attend(int64_t start, int64_t P, int64_t head) const {
        const float *q = wide + start * 3 * D + head * d, *k = q + D, *v = q + 2 * D;
        vec *to = keys;
        for (int64_t first = 0; first < P; first += PANEL * WIDTH) {
            const int nv = panel_vecs(P, first);
            for_panel(nv, PackKeys{*this, k, P}, first, to);
            to += nv * d;
        }
        to = values;
        for (int64_t first = 0; first < d; first += PANEL * WIDTH) {
            const int nv = panel_vecs(d, first);
            for (int64_t n = 0; n < P; n++)
                for (int one = 0; one < nv; one++) {
                    const int64_t at = first + one * WIDTH;
                    *to++ = load_some(v + n * 3 * D + at, d - at);
                }
        }
        for (int64_t row = 0; row < P; row += ROWS_AT_ONCE) {
            const int count = int(P - row < ROWS_AT_ONCE ? P - row : ROWS_AT_ONCE);
            const float *own[ROWS_AT_ONCE];
            float sums[ROWS_AT_ONCE];
            for (int r = 0; r < ROWS_AT_ONCE; r++) own[r] = q + (r < count ? row + r : P - 1) * 3 * D;
            const vec *columns = keys;
            for (int64_t first = 0; first < P; first += PANEL * WIDTH) {
                const int nv = panel_vecs(P, first);
                for_panel(nv, Compare{*this, own}, first, columns);
                columns += nv * d;
            }
            for (int r = 0; r < ROWS_AT_ONCE; r++) {
                float *s = scores + r * scores_step();
                own[r] = s, sums[r] = r < count ? weigh(s, P) : 1.0f;
            }
            columns = values;
            for (int64_t first = 0; first < d; first += PANEL * WIDTH) {
                const int nv = panel_vecs(d, first);
                for_panel(nv, Mean{*this, own, sums, P, seen + (start + row) * D + head * d, count}, first, columns);
                columns += nv * P;
            }
        }
    }

    void layer(const LayerWeights &w) const {
        multiply(task.x, rows, D, w.qkv, 3 * D, w.qkv_bias, wide);
        for (int64_t n = 0; n < task.texts; n++)
            for (int64_t head = 0; head < task.heads; head++)
                attend(task.starts[n] - task.starts[0], task.starts[n + 1] - task.starts[n], head);
        multiply(seen, rows, D, w.out, D, w.out_bias, wide);
        normalize(wide, w.first, w.first_bias);
        multiply(task.x, rows, D, w.up, task.inner, w.up_bias, wide);
        activate(wide, rows * task.inner);
        multiply(wide, rows, task.inner, w.down, D, w.down_bias, seen);
        normalize(seen, w.second, w.second_bias);
    }

  public:
    explicit Layers(const TransformerTask &task)
        : task(task), D(task.size), d(D / task.heads), rows(task.starts[task.texts] - task.starts[0]) {
        for (int64_t n = 0; n < task.texts; n++) {
            const int64_t P = task.starts[n + 1] - task.starts[n];
            longest = P > longest ? P : longest;
        }
    }

    int run() {
        const int64_t most = 3 * D > task.inner ? 3 * D : task.inner, panels = whole_vecs(longest);
        Scratch scratch(whole_vecs(rows * most) + whole_vecs(rows * D) + panels * ROWS_AT_ONCE + panels * d +
                        longest * whole_vecs(d) + whole_vecs(d));
        if (scratch.failed()) return 1;
        const auto floats = [&](int64_t count) { return reinterpret_cast<float *>(scratch.take(count)); };
        wide = floats(whole_vecs(rows * most)), seen = floats(whole_vecs(rows * D));
        scores = floats(panels * ROWS_AT_ONCE), keys = scratch.take(panels * d);
        values = scratch.take(longest * whole_vecs(d)), zeros = floats(whole_vecs(d));
        normalize(nullptr, task.norm, task.norm_bias);
        for (int64_t n = 0; n < task.layers; n++) layer(task.weights[n]);
        return 0;
    }
};

}  // namespace

extern "C" {

int64_t matchloom_transformer_task_bytes() { return sizeof(TransformerTask); }

// 0, or 1 if memory ran out.
int matchloom_transformer(const TransformerTask *task) { return Layers(*task).run(); }
}
