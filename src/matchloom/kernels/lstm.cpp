// LSTMs over texts of their own lengths, forward and backward, in float32. layers/recurrence.py says what is asked.
//
// Texts are SIMD lanes, as pairs are in spatial_gru.cpp: one call reads a group of up to 2 * WIDTH texts of like
// length in step, in one direction or in both. The gates of a few units are summed over the word's numbers and the
// state before in registers, and become c and h there. A lane's numbers never meet another lane's, and their order is
// the same with one vector of lanes as with two: h depends on the text alone, to the last bit. Where words occur often,
// their part of the sums is made once for each distinct word; it is where the sums of its positions begin, and since
// they begin so in either case, no bit of h shows which it was.
//
// For the gradient the forward pass keeps i, f, g and o of every unit. The backward pass makes c, tanh c and h of them,
// for one group and direction at a time, and walks back through the words; gradients of the gates leave their lanes as rows, which make the weights' gradient together with rows of
// [word ; state before ; 1], some dozens at a time while they are in the cache.

#include "product.h"

namespace {

// UNITS * 4 gates, or TILE numbers, are summed in registers at once; A x B of them in the gradient of the weights, or
// A x FEW.
#if defined(__AVX512F__)
constexpr int UNITS = 3, TILE = 10, A = 4, B = 7, FEW = 4;
#else
constexpr int UNITS = 1, TILE = 5, A = 4, B = 2, FEW = 1;
#endif
constexpr int KEPT = 4;   // i, f, g, o of a unit
constexpr int ROWS = 64;  // between two visits to the sums of the weights' gradient

int up_to(int count, int step) { return (count + step - 1) / step * step; }
int64_t gates_floats(int64_t H) { return up_to(4 * up_to(int(H), UNITS), WIDTH); }

// What a call works on; matches kernels/native.py.
struct LstmTask {
    int64_t size, hidden;         // D, H
    int64_t directions, reverse;  // one, which reads from the end if `reverse`; or two, the second from the end
    int64_t width, count;         // words between two texts of x; texts of this group, at most 2 * WIDTH
    const int64_t *texts, *lengths;  // which texts, the longest first; the lengths of all texts
    const float *x;                  // [text][width][D]; the forward pass reads it if `projected` is null
    const int64_t *words;            // [text][width]: the row of `projected` that is a word's
    const float *projected;          // [word][direction][matchloom_lstm_gates]: bias and products of the word
    const float *packed, *turned;    // the weights of each direction as the two passes read them
    float *h;                        // [text][width][directions * H]; 0 behind a text. Of the forward pass
    float *kept;                     // matchloom_lstm_kept numbers for this group; may be null
    const float *h_gradient;         // like h
    float *x_gradient;               // like x; may be null. 0 behind a text
    float *weights_gradient;         // [direction][4H][D, H, bias, up to a whole vector]
    float *words_gradient;           // [word][direction][4H]: the gates' gradients of a distinct word are added to it, and
                                     // weights_gradient has no D; or null
};

// sums[a][b] += the sum over rows of gates[row][a] * x[row][b], for A x N vectors in registers.
template <int N>
void outer(float *sums, int step, const float *gates, int gates_step, const float *x, int count) {
    vec sum[A][N];
    UNROLL for (int a = 0; a < A; a++)
        UNROLL for (int b = 0; b < N; b++) memcpy(&sum[a][b], sums + a * step + b * WIDTH, sizeof(vec));
    for (; count > 0; count--, gates += gates_step, x += step)
        UNROLL for (int b = 0; b < N; b++) {
            vec own;
            memcpy(&own, x + b * WIDTH, sizeof(vec));
            UNROLL for (int a = 0; a < A; a++) sum[a][b] = multiply_add(splat(gates[a]), own, sum[a][b]);
        }
    UNROLL for (int a = 0; a < A; a++)
        UNROLL for (int b = 0; b < N; b++) memcpy(sums + a * step + b * WIDTH, &sum[a][b], sizeof(vec));
}

// The same for all numbers of some rows: gates [row][gates_count], x [row][inputs], sums [gates_count][inputs]. Whole
// vectors of inputs, and a multiple of A gates.
void add_outer(float *sums, int inputs, const float *gates, int gates_count, const float *x, int count) {
    for (int a = 0; a < gates_count; a += A, sums += A * inputs, gates += A)
        for (int b = 0; b < inputs;) {
            const int left = (inputs - b) / WIDTH;
            if (left >= B) outer<B>(sums + b, inputs, gates, gates_count, x + b, count), b += B * WIDTH;
            else if (left >= FEW) outer<FEW>(sums + b, inputs, gates, gates_count, x + b, count), b += FEW * WIDTH;
            else outer<1>(sums + b, inputs, gates, gates_count, x + b, count), b += WIDTH;
        }
}

template <int NV>
class Texts {
    static constexpr int LANES = NV * WIDTH, SOME = UNITS * NV;
    const LstmTask &task;
    const int D, H, used, padded;
    const int own_inputs, inputs;  // numbers of a word, and of [word ; state before ; 1], in the weights' gradient
    int T = 0;  // the longest of these texts

    int length(int lane) const { return int(task.lengths[task.texts[lane]]); }
    bool backwards(int direction) const { return direction == 1 || task.reverse; }

    // The row of the whole array in which a lane's step t lies.
    int64_t row(int direction, int lane, int t) const {
        return task.texts[lane] * task.width + (backwards(direction) ? length(lane) - 1 - t : t);
    }
    int64_t h_step() const { return task.directions * H; }
    float *h_row(int direction, int lane, int t) const {
        return task.h + row(direction, lane, t) * h_step() + direction * H;
    }
    vec *kept(int direction, int t) const {
        return reinterpret_cast<vec *>(task.kept) + (size_t(direction) * T + t) * padded * KEPT * NV;
    }

    int inputs_count() const { return task.projected ? 4 * padded : D; }  // of a word in the forward pass
    const float *input(int direction, int lane, int t) const {
        const int64_t at = row(direction, lane, t);
        if (!task.projected) return task.x + at * D;
        return task.projected + (task.words[at] * task.directions + direction) * gates_floats(H);
    }

    // One direction of the forward pass.
    void read(int direction, const float *zeros, vec *x, vec *h, vec *next, vec *c) const {
        memset(h, 0, sizeof(vec) * padded * NV);
        memset(c, 0, sizeof(vec) * padded * NV);
        for (int t = 0; t < T; t++) {
            const float *from[LANES];
            float *to[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                const bool there = lane < used && t < length(lane);
                from[lane] = there ? input(direction, lane, t) : zeros;
                to[lane] = there ? h_row(direction, lane, t) : nullptr;
                if (there) expect<true>(to[lane], H);
                if (there && t + 1 < length(lane)) expect<false>(input(direction, lane, t + 1), inputs_count());
            }
            to_lanes<NV>(from, inputs_count(), x);
            step(task.packed + size_t(direction) * padded * 4 * (D + H + 1), x, h, next, c,
                 task.kept ? kept(direction, t) : nullptr);
            from_lanes<NV, false>(next, H, to);
            vec *done = h;
            h = next, next = done;
        }
    }

    // All units of one word. `next` gets the new h.
    void step(const float *w, const vec *x, const vec *h, vec *next, vec *c, vec *keep) const {
        for (int unit = 0; unit < padded; unit += UNITS) {
            vec sum[4 * UNITS][NV];
            w = task.projected ? sums<true>(w, x + unit * 4 * NV, h, sum) : sums<false>(w, x, h, sum);
            vec i[SOME], f[SOME], g[SOME], o[SOME], tanh[SOME];
            memcpy(i, sum, sizeof i), memcpy(f, sum + UNITS, sizeof f);
            memcpy(g, sum + 2 * UNITS, sizeof g), memcpy(o, sum + 3 * UNITS, sizeof o);
            sigmoids_of(i), tanhs_of(g), sigmoids_of(f), sigmoids_of(o);
            UNROLL for (int n = 0; n < SOME; n++) {
                const vec now = multiply_add(f[n], c[unit * NV + n], i[n] * g[n]);
                c[unit * NV + n] = now;
                tanh[n] = now * (2 * LOG2E);
            }
            tanhs_of(tanh);
            UNROLL for (int n = 0; n < SOME; n++) next[unit * NV + n] = o[n] * tanh[n];
            UNROLL for (int n = 0; keep && n < SOME; n++) {
                vec *own = keep + (unit + n / NV) * KEPT * NV + n % NV;
                own[0] = i[n], own[NV] = f[n], own[2 * NV] = g[n], own[3 * NV] = o[n];
            }
        }
    }

    // A function of its own, or the constants of sigmoid and tanh would take the registers that sums need.
    template <bool PROJECTED>
    [[gnu::noinline]] const float *sums(const float *w, const vec *x, const vec *h, vec (&out)[4 * UNITS][NV]) const {
        vec sum[4 * UNITS][NV];
        UNROLL for (int g = 0; g < 4 * UNITS; g++)
            UNROLL for (int v = 0; v < NV; v++) sum[g][v] = PROJECTED ? x[g * NV + v] : splat(w[g]);
        w = PROJECTED ? w + 4 * UNITS * (D + 1) : add(w + 4 * UNITS, x, D, sum);
        w = add(w, h, H, sum);
        UNROLL for (int g = 0; g < 4 * UNITS; g++)
            UNROLL for (int v = 0; v < NV; v++) out[g][v] = sum[g][v];
        return w;
    }

    static inline const float *add(const float *w, const vec *x, int count, vec (&sum)[4 * UNITS][NV]) {
        for (int k = count; k > 0; k--, x += NV, w += 4 * UNITS)
            UNROLL for (int g = 0; g < 4 * UNITS; g++)
                UNROLL for (int v = 0; v < NV; v++) sum[g][v] = multiply_add(splat(w[g]), x[v], sum[g][v]);
        return w;
    }

    // out[o] = the sum over k of w[o][k] * in[k]; writes whole tiles.
    static void product(const float *w, int outputs, const vec *in, int count, vec *out) {
        for (int o = 0; o < outputs; o += TILE, out += TILE * NV) {
            vec sum[TILE][NV];
            UNROLL for (int j = 0; j < TILE; j++)
                UNROLL for (int v = 0; v < NV; v++) sum[j][v] = vec{};
            const vec *x = in;
            for (int k = count; k > 0; k--, x += NV, w += TILE)
                UNROLL for (int j = 0; j < TILE; j++)
                    UNROLL for (int v = 0; v < NV; v++) sum[j][v] = multiply_add(splat(w[j]), x[v], sum[j][v]);
            UNROLL for (int j = 0; j < TILE; j++)
                UNROLL for (int v = 0; v < NV; v++) out[j * NV + v] = sum[j][v];
        }
    }

    // From the gradients of h and c to those of the gates before their sigmoid or tanh, and of the c before.
    // `cells` are c and tanh c of this word; those of the word before, if there is one, stand before them.
    void gates(const vec *own, const vec *cells, bool before, const vec *up, const vec *back, vec *dc, vec *gradient) const {
        for (int unit = 0; unit < H; unit++)
            UNROLL for (int v = 0; v < NV; v++) {
                const int at = unit * NV + v, four = unit * KEPT * NV + v;
                const vec i = own[four], f = own[four + NV], g = own[four + 2 * NV], o = own[four + 3 * NV];
                const vec tanh = cells[H * NV + at], dh = up[at] + back[at];
                const vec all = dc[at] + dh * o * (1.0f - tanh * tanh);
                gradient[at] = all * g * i * (1.0f - i);
                gradient[H * NV + at] = before ? all * cells[at - 2 * H * NV] * f * (1.0f - f) : vec{};
                gradient[2 * H * NV + at] = all * i * (1.0f - g * g);
                gradient[3 * H * NV + at] = dh * tanh * o * (1.0f - o);
                dc[at] = all * f;
            }
    }

    // c and tanh c of all words, [word][2][H], as the forward pass made them.
    void remember(int direction, vec *cells) const {
        const size_t step = size_t(2) * H * NV;
        for (int t = 0; t < T; t++, cells += step) {
            const vec *own = kept(direction, t);
            for (int unit = 0; unit < H; unit++, own += KEPT * NV)
                UNROLL for (int v = 0; v < NV; v++) {
                    vec *at = cells + unit * NV + v;
                    *at = multiply_add(own[NV + v], t ? *(at - step) : vec{}, own[v] * own[2 * NV + v]);
                    at[H * NV] = tanh_of(*at * (2 * LOG2E));
                }
        }
    }

    // h of the word before, as rows, or 0 where there is none.
    void write_states(int direction, int t, const vec *cells, vec *h, float *const *to) const {
        if (t == 0) {
            for (int lane = 0; lane < LANES; lane++)
                if (to[lane]) memset(to[lane], 0, H * sizeof(float));
            return;
        }
        const vec *own = kept(direction, t - 1);
        for (int unit = 0; unit < H; unit++, own += KEPT * NV)
            UNROLL for (int v = 0; v < NV; v++) h[unit * NV + v] = own[3 * NV + v] * cells[unit * NV + v - H * NV];
        from_lanes<NV, false>(h, H, to);
    }

    struct Room {  // of the backward pass
        vec *up, *back, *dc, *gates, *dx, *h, *cells;
        float *gates_rows, *x_rows;
        const float *zeros;
    };

    float *word_gradient(int direction, int lane, int t) const {
        return task.words_gradient + (task.words[row(direction, lane, t)] * task.directions + direction) * 4 * H;
    }

    // The gates' gradients of one step to those of their words.
    void add_to_words(int direction, int t, float *const *rows) const {
        for (int lane = 0; lane < used; lane++) {
            if (!rows[lane]) continue;
            float *to = word_gradient(direction, lane, t);
            for (int k = 0; k < 4 * H; k += WIDTH)
                store_some(to + k, load_some(to + k, 4 * H - k) + load_some(rows[lane] + k, 4 * H - k), 4 * H - k);
        }
    }

    // One direction of the backward pass.
    void walk_back(int direction, const Room &room) const {
        const size_t turned = size_t(up_to(D, TILE) + up_to(H, TILE)) * 4 * H;
        const float *to_x = task.turned + direction * turned, *to_h = to_x + size_t(up_to(D, TILE)) * 4 * H;
        float *sums = task.weights_gradient + size_t(direction) * 4 * H * inputs;
        memset(sums, 0, sizeof(float) * 4 * H * inputs);
        memset(room.back, 0, sizeof(vec) * up_to(H, TILE) * NV);
        memset(room.dc, 0, sizeof(vec) * H * NV);
        remember(direction, room.cells);
        int rows = 0;
        for (int t = T - 1; t >= 0; t--) {
            const float *from[LANES];
            float *to_row[LANES], *to_word[LANES], *to_state[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                const bool there = lane < used && t < length(lane);
                from[lane] = there ? task.h_gradient + row(direction, lane, t) * h_step() + direction * H : room.zeros;
                to_row[lane] = there ? room.gates_rows + size_t(rows) * 4 * H : nullptr;
                to_word[lane] = there && task.x_gradient ? task.x_gradient + row(direction, lane, t) * D : nullptr;
                to_state[lane] = there ? room.x_rows + size_t(rows++) * inputs + own_inputs : nullptr;
                if (there) to_state[lane][H] = 1.0f;
                if (there && own_inputs)
                    memcpy(to_state[lane] - own_inputs, task.x + row(direction, lane, t) * D, D * sizeof(float));
                if (there && t > 0) {
                    expect<false>(task.h_gradient + row(direction, lane, t - 1) * h_step() + direction * H, H);
                    if (own_inputs) expect<false>(task.x + row(direction, lane, t - 1) * D, D);
                }
                if (there && task.words_gradient) expect<true>(word_gradient(direction, lane, t), 4 * H);
                if (to_word[lane]) expect<true>(to_word[lane], D);
            }
            to_lanes<NV>(from, H, room.up);
            const vec *cells = room.cells + size_t(t) * 2 * H * NV;
            write_states(direction, t, cells, room.h, to_state);
            gates(kept(direction, t), cells, t > 0, room.up, room.back, room.dc, room.gates);
            from_lanes<NV, false>(room.gates, 4 * H, to_row);
            if (task.words_gradient) add_to_words(direction, t, to_row);
            if (t > 0) product(to_h, H, room.gates, 4 * H, room.back);
            if (task.x_gradient) {
                product(to_x, D, room.gates, 4 * H, room.dx);
                direction ? from_lanes<NV, true>(room.dx, D, to_word) : from_lanes<NV, false>(room.dx, D, to_word);
            }
            if (rows >= ROWS || t == 0) add_outer(sums, inputs, room.gates_rows, 4 * H, room.x_rows, rows), rows = 0;
        }
    }

    void clear_behind(float *x, int64_t step) const {
        for (int lane = 0; lane < used; lane++) {
            const int64_t own = task.texts[lane], words = length(lane);
            memset(x + (own * task.width + words) * step, 0, sizeof(float) * (task.width - words) * step);
        }
    }

    static size_t vecs(size_t numbers) { return (numbers + WIDTH - 1) / WIDTH; }

  public:
    explicit Texts(const LstmTask &task)
        : task(task), D(int(task.size)), H(int(task.hidden)), used(int(task.count)), padded(up_to(H, UNITS)),
          own_inputs(task.words_gradient ? 0 : D), inputs(up_to(own_inputs + H + 1, WIDTH)) {
        for (int lane = 0; lane < used; lane++) T = length(lane) > T ? length(lane) : T;
    }

    int forward() const {
        const int count = inputs_count();
        Scratch scratch(vecs(count) + size_t(count + 3 * padded) * NV);
        if (scratch.failed()) return 1;
        const float *zeros = reinterpret_cast<const float *>(scratch.take(vecs(count)));
        vec *x = scratch.take(size_t(count) * NV), *h = scratch.take(size_t(padded) * NV);
        vec *next = scratch.take(size_t(padded) * NV), *c = scratch.take(size_t(padded) * NV);
        for (int direction = 0; direction < task.directions; direction++) read(direction, zeros, x, h, next, c);
        clear_behind(task.h, h_step());
        return 0;
    }

    int backward() const {
        const size_t rows = ROWS + LANES, h_vecs = size_t(up_to(H, TILE)) * NV, x_vecs = size_t(up_to(D, TILE)) * NV;
        const size_t gates_vecs = vecs(rows * 4 * H), inputs_vecs = rows * inputs / WIDTH;
        const size_t cells_vecs = size_t(T) * 2 * H * NV;
        Scratch scratch(4 * h_vecs + x_vecs + cells_vecs + size_t(4 * H) * NV + gates_vecs + inputs_vecs + vecs(H));
        if (scratch.failed()) return 1;
        const auto floats = [&](size_t count) { return reinterpret_cast<float *>(scratch.take(count)); };
        const Room room{scratch.take(h_vecs), scratch.take(h_vecs), scratch.take(h_vecs), scratch.take(size_t(4 * H) * NV),
                        scratch.take(x_vecs), scratch.take(h_vecs), scratch.take(cells_vecs), floats(gates_vecs),
                        floats(inputs_vecs), floats(vecs(H))};
        for (int direction = 0; direction < task.directions; direction++) walk_back(direction, room);
        if (task.x_gradient) clear_behind(task.x_gradient, D);
        return 0;
    }

    static int64_t kept_floats(int64_t hidden, int64_t directions, int64_t steps) {
        return directions * steps * up_to(int(hidden), UNITS) * KEPT * LANES;
    }
};

}  // namespace

extern "C" {

int64_t matchloom_lstm_task_bytes() { return sizeof(LstmTask); }

// How many numbers the weights of a direction take as the forward pass reads them, as the backward pass does, and as
// their gradient; and what is kept for so many texts, the longest of so many words.
int64_t matchloom_lstm_packed(int64_t D, int64_t H) { return up_to(int(H), UNITS) * 4 * (D + H + 1); }
int64_t matchloom_lstm_turned(int64_t D, int64_t H) { return (up_to(int(D), TILE) + up_to(int(H), TILE)) * 4 * H; }
int64_t matchloom_lstm_gradient(int64_t D, int64_t H) { return 4 * H * up_to(int(D + H + 1), WIDTH); }
int64_t matchloom_lstm_kept(int64_t hidden, int64_t directions, int64_t count, int64_t steps) {
    return count > WIDTH ? Texts<2>::kept_floats(hidden, directions, steps)
                         : Texts<1>::kept_floats(hidden, directions, steps);
}

// Weights in torch's order, [i f g o][D] and [i f g o][H], as the forward pass reads them: for each UNITS units their
// biases, then for each input their weights. Scaled, so that powers of two do for sigmoid and tanh.
void matchloom_lstm_pack(const float *w_x, const float *w_h, const float *b_x, const float *b_h, int64_t D, int64_t H,
                         float *to) {
    const float scales[] = {-LOG2E, -LOG2E, 2 * LOG2E, -LOG2E};
    for (int64_t unit = 0; unit < H; unit += UNITS) {
        const float *x[4 * UNITS], *h[4 * UNITS];
        float scale[4 * UNITS];  // 0 for units that only fill up the last ones, which read the last unit's weights
        for (int n = 0; n < 4 * UNITS; n++) {
            const int64_t u = unit + n % UNITS, o = n / UNITS * H + (u < H ? u : H - 1);
            x[n] = w_x + o * D, h[n] = w_h + o * H, scale[n] = u < H ? scales[n / UNITS] : 0.0f;
            *to++ = scale[n] * (b_x[o] + b_h[o]);
        }
        for (int64_t k = 0; k < D; k++)
            UNROLL for (int n = 0; n < 4 * UNITS; n++) *to++ = scale[n] * x[n][k];
        for (int64_t k = 0; k < H; k++)
            UNROLL for (int n = 0; n < 4 * UNITS; n++) *to++ = scale[n] * h[n][k];
    }
}

// The same as the backward pass reads them: for each TILE inputs, for each gate their weights; words, then states.
void matchloom_lstm_turn(const float *w_x, const float *w_h, int64_t D, int64_t H, float *to) {
    const float *const matrices[] = {w_x, w_h};
    const int64_t widths[] = {D, H};
    for (int part = 0; part < 2; part++)
        for (int64_t first = 0; first < widths[part]; first += TILE)
            for (int64_t o = 0; o < 4 * H; o++)
                for (int64_t k = first; k < first + TILE; k++)
                    *to++ = k < widths[part] ? matrices[part][o * widths[part] + k] : 0.0f;
}

// How many numbers a direction's part of `projected` has, and these: x [words][D], `packed` as above for each direction,
// out [word][direction][gates]. 0, or 1 if memory ran out.
int64_t matchloom_lstm_gates(int64_t H) { return gates_floats(H); }
int matchloom_lstm_project(const float *x, int64_t words, int64_t D, int64_t H, int64_t directions, const float *packed,
                           float *out) {
    const int64_t gates = gates_floats(H), outputs = directions * gates;
    Scratch scratch(outputs / WIDTH * (D + 1));
    if (scratch.failed()) return 1;
    float *bias = reinterpret_cast<float *>(scratch.take(outputs / WIDTH));
    vec *panels = scratch.take(outputs / WIDTH * D);
    for (int64_t direction = 0; direction < directions; direction++)
        for (int64_t unit = 0; unit < up_to(int(H), UNITS); unit += UNITS)
            for (int64_t k = -1; k < D; k++, packed += 4 * UNITS) {
                const int64_t at = direction * gates + unit * 4;
                if (k < 0) memcpy(bias + at, packed, 4 * UNITS * sizeof(float));
                for (int64_t n = at; k >= 0 && n < at + 4 * UNITS; n++) {  // into its panel, see product.h
                    const int64_t first = n / (PANEL * WIDTH) * PANEL * WIDTH, nv = panel_vecs(outputs, first);
                    float *panel = reinterpret_cast<float *>(panels) + first * D;
                    panel[k * nv * WIDTH + n - first] = packed[n - at];
                }
                if (k == D - 1) packed += 4 * UNITS * H;
            }
    multiply(x, words, D, reinterpret_cast<float *>(panels), outputs, bias, out);
    return 0;
}

// The gradient of the words' weights from the gates' gradients of distinct words: gates [word][count] with a multiple of
// 4 numbers, x [word][inputs] in whole vectors (matchloom_lstm_inputs of D), out [count][inputs].
int64_t matchloom_lstm_inputs(int64_t D) { return up_to(int(D), WIDTH); }
void matchloom_lstm_words_back(const float *gates, int64_t words, int64_t count, const float *x, int64_t inputs,
                               float *out) {
    memset(out, 0, count * inputs * sizeof(float));
    for (int64_t n = 0; n < words; n += ROWS)  // while they are in the cache
        add_outer(out, int(inputs), gates + n * count, int(count), x + n * inputs, int(words - n < ROWS ? words - n : ROWS));
}

// The distinct numbers among ids, in the order in which they come, and for each id the place of its own. Returns how
// many there are, or -1 if memory ran out.
int64_t matchloom_distinct(const int64_t *ids, int64_t count, int64_t *distinct, int64_t *places) {
    int64_t most = 2;
    while (most < 2 * count) most *= 2;
    int64_t *slots = static_cast<int64_t *>(calloc(most, sizeof(int64_t))), found = 0;  // place + 1; 0: free
    if (!slots) return -1;
    for (int64_t n = 0; n < count; n++) {
        uint64_t at = uint64_t(ids[n]) * 0x9E3779B97F4A7C15ull >> 20;
        for (at &= most - 1; slots[at] && distinct[slots[at] - 1] != ids[n]; at = (at + 1) & (most - 1)) {}
        if (!slots[at]) distinct[found] = ids[n], slots[at] = ++found;
        places[n] = slots[at] - 1;
    }
    free(slots);
    return found;
}

// 0, or 1 if memory ran out.
int matchloom_lstm_forward(const LstmTask *task) {
    return task->count > WIDTH ? Texts<2>(*task).forward() : Texts<1>(*task).forward();
}

int matchloom_lstm_backward(const LstmTask *task) {
    return task->count > WIDTH ? Texts<2>(*task).backward() : Texts<1>(*task).backward();
}
}
