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
// for one group and direction at a time, and walks back through the words; gradients of the gates leave their lanes as
// rows, which make the weights' gradient together with words, states before (in their lanes) and 1, some dozens at a
// time while they are in the cache.

#include "product.h"

namespace {

// UNITS * 4 gates, or TILE numbers, are summed in registers at once.
#if defined(__AVX512F__)
constexpr int UNITS = 3, TILE = 10;
#else
constexpr int UNITS = 1, TILE = 5;
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
    float *weights_gradient;         // [direction][D, H, bias][4H up to a whole vector]; added to
    float *words_gradient;           // [word][direction][4H], a word up to a whole vector: the gates' gradients of a
                                     // distinct word are added to it, and weights_gradient has no D; or null
};

template <int NV>
class Texts {
    static constexpr int LANES = NV * WIDTH, SOME = UNITS * NV;
    const LstmTask &task;
    const int D, H, used, padded;
    const int own_inputs, gates_step;  // numbers of a word in the weights' gradient; of a row of gates there
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
            step(task.packed + size_t(direction) * padded * 4 * (D + H + 1), x, h, t ? H : 0, next, c,
                 task.kept ? kept(direction, t) : nullptr);
            from_lanes<NV, false>(next, H, to);
            vec *done = h;
            h = next, next = done;
        }
    }

    // All units of one word. `next` gets the new h; of the h before, `states` numbers count: none before the first word.
    void step(const float *w, const vec *x, const vec *h, int states, vec *next, vec *c, vec *keep) const {
        for (int unit = 0; unit < padded; unit += UNITS) {
            vec sum[4 * UNITS][NV];
            w = task.projected ? sums<true>(w, x + unit * 4 * NV, h, states, sum)
                               : sums<false>(w, x, h, states, sum);
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
    [[gnu::noinline]] const float *sums(const float *w, const vec *x, const vec *h, int states,
                                        vec (&out)[4 * UNITS][NV]) const {
        vec sum[4 * UNITS][NV];
        UNROLL for (int g = 0; g < 4 * UNITS; g++)
            UNROLL for (int v = 0; v < NV; v++) sum[g][v] = PROJECTED ? x[g * NV + v] : splat(w[g]);
        w = PROJECTED ? w + 4 * UNITS * (D + 1) : add(w + 4 * UNITS, x, D, sum);
        add(w, h, states, sum);
        UNROLL for (int g = 0; g < 4 * UNITS; g++)
            UNROLL for (int v = 0; v < NV; v++) out[g][v] = sum[g][v];
        return w + 4 * UNITS * H;
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

    // h of the word before, in the lanes of one of the steps that are kept; `cells` are those of this word.
    void write_states(int direction, int t, const vec *cells, vec *to) const {
        const vec *own = kept(direction, t - 1);
        for (int unit = 0; unit < H; unit++, own += KEPT * NV, to += STEPS * NV)
            UNROLL for (int v = 0; v < NV; v++) to[v] = own[3 * NV + v] * cells[unit * NV + v - H * NV];
    }

    static constexpr int STEPS = ROWS / LANES;  // whose rows are kept until the sums are visited

    struct Room {  // of the backward pass
        vec *up, *back, *dc, *gates, *dx, *cells;
        vec *states;        // [H + 1][STEPS][NV]: h before, and 1
        float *gates_rows;  // [STEPS][LANES][gates_step]
        float *x_rows;      // [STEPS][LANES][own_inputs]
        const float *zeros;
    };

    float *word_gradient(int direction, int lane, int t) const {
        const int64_t step = up_to(int(task.directions) * 4 * H, WIDTH);
        return task.words_gradient + task.words[row(direction, lane, t)] * step + direction * 4 * H;
    }

    // The gates' gradients of one step to those of their words.
    void add_to_words(float *const *rows, float *const *sums) const {
        for (int lane = 0; lane < used; lane++) {
            if (!rows[lane]) continue;
            float *to = sums[lane];
            for (int k = 0; k < 4 * H; k += WIDTH)
                store_some(to + k, load_some(to + k, 4 * H - k) + load_some(rows[lane] + k, 4 * H - k), 4 * H - k);
        }
    }

    // The weights' gradient of the steps that are kept. There is no state before the first word, but always a 1.
    void add_to_sums(const Room &room, const int *counts, int steps, bool states, float *sums) const {
        for (int step = 0; step < steps;) {
            int first = step * LANES, rows = counts[step];
            for (step++; step < steps && counts[step - 1] == LANES; step++) rows += counts[step];  // without a gap
            const float *gates = room.gates_rows + size_t(first) * gates_step;
            const float *h = reinterpret_cast<const float *>(room.states) + first;
            add_outer(sums, room.x_rows + size_t(first) * own_inputs, 1, own_inputs, own_inputs, gates, gates_step, rows);
            const int begin = states ? 0 : H;
            add_outer(sums + size_t(own_inputs + begin) * gates_step, h + size_t(begin) * ROWS, ROWS, 1, H + 1 - begin,
                      gates, gates_step, rows);
        }
    }

    // One direction of the backward pass.
    void walk_back(int direction, const Room &room) const {
        const size_t turned = size_t(up_to(D, TILE) + up_to(H, TILE)) * 4 * H;
        const float *to_x = task.turned + direction * turned, *to_h = to_x + size_t(up_to(D, TILE)) * 4 * H;
        float *sums = task.weights_gradient + size_t(direction) * (own_inputs + H + 1) * gates_step;
        memset(room.back, 0, sizeof(vec) * up_to(H, TILE) * NV);
        memset(room.dc, 0, sizeof(vec) * H * NV);
        remember(direction, room.cells);
        int counts[STEPS], steps = 0;
        for (int t = T - 1; t >= 0; t--) {
            const float *from[LANES];
            float *to_row[LANES], *to_word[LANES], *to_words_sum[LANES];
            if (steps == STEPS || (t == 0 && steps > 0)) add_to_sums(room, counts, steps, true, sums), steps = 0;
            counts[steps] = 0;
            for (int lane = 0; lane < LANES; lane++) {
                const bool there = lane < used && t < length(lane);
                if (there) counts[steps] = lane + 1;
                from[lane] = there ? task.h_gradient + row(direction, lane, t) * h_step() + direction * H : room.zeros;
                to_row[lane] = room.gates_rows + (size_t(steps) * LANES + lane) * gates_step;
                to_word[lane] = there && task.x_gradient ? task.x_gradient + row(direction, lane, t) * D : nullptr;
                to_words_sum[lane] = there && task.words_gradient ? word_gradient(direction, lane, t) : nullptr;
                if (!there) memset(to_row[lane], 0, 4 * H * sizeof(float)), to_row[lane] = nullptr;
                if (there && own_inputs)
                    memcpy(room.x_rows + (size_t(steps) * LANES + lane) * own_inputs,
                           task.x + row(direction, lane, t) * D, D * sizeof(float));
                if (there && t > 0) {
                    expect<false>(task.h_gradient + row(direction, lane, t - 1) * h_step() + direction * H, H);
                    if (own_inputs) expect<false>(task.x + row(direction, lane, t - 1) * D, D);
                    if (task.words_gradient) expect_later(word_gradient(direction, lane, t - 1), 4 * H);
                }
                if (to_word[lane]) expect<true>(to_word[lane], D);
            }
            to_lanes<NV>(from, H, room.up);
            const vec *cells = room.cells + size_t(t) * 2 * H * NV;
            if (t > 0) write_states(direction, t, cells, room.states + steps * NV);
            gates(kept(direction, t), cells, t > 0, room.up, room.back, room.dc, room.gates);
            from_lanes<NV, false>(room.gates, 4 * H, to_row);
            if (task.words_gradient) add_to_words(to_row, to_words_sum);
            if (t > 0) product(to_h, H, room.gates, 4 * H, room.back);
            if (task.x_gradient) {
                product(to_x, D, room.gates, 4 * H, room.dx);
                direction ? from_lanes<NV, true>(room.dx, D, to_word) : from_lanes<NV, false>(room.dx, D, to_word);
            }
            steps++;
        }
        add_to_sums(room, counts, steps, false, sums);
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
          own_inputs(task.words_gradient ? 0 : D), gates_step(up_to(4 * H, WIDTH)) {
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
        const size_t h_vecs = size_t(up_to(H, TILE)) * NV, x_vecs = size_t(up_to(D, TILE)) * NV;
        const size_t cells_vecs = size_t(T) * 2 * H * NV, states_vecs = size_t(H + 1) * STEPS * NV;
        const size_t gates_vecs = vecs(size_t(ROWS) * gates_step), inputs_vecs = vecs(size_t(ROWS) * own_inputs);
        Scratch scratch(3 * h_vecs + x_vecs + cells_vecs + states_vecs + size_t(4 * H) * NV + gates_vecs + inputs_vecs +
                        vecs(H));
        if (scratch.failed()) return 1;
        const auto floats = [&](size_t count) { return reinterpret_cast<float *>(scratch.take(count)); };
        const Room room{scratch.take(h_vecs), scratch.take(h_vecs), scratch.take(h_vecs), scratch.take(size_t(4 * H) * NV),
                        scratch.take(x_vecs), scratch.take(cells_vecs), scratch.take(states_vecs), floats(gates_vecs),
                        floats(inputs_vecs), floats(vecs(H))};
        for (int n = 0; n < STEPS * NV; n++) room.states[size_t(H) * STEPS * NV + n] = splat(1.0f);
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
int64_t matchloom_lstm_gradient(int64_t D, int64_t H) { return (D + H + 1) * up_to(int(4 * H), WIDTH); }
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

// The gradient of the words' weights from the gates' gradients of distinct words: gates [word][count], whole vectors,
// x [word][D], out [D][count].
void matchloom_lstm_words_back(const float *gates, int64_t words, int64_t count, const float *x, int64_t D, float *out) {
    memset(out, 0, D * count * sizeof(float));
    for (int64_t n = 0; n < words; n += ROWS)  // while they are in the cache
        add_outer(out, x + n * D, 1, D, D, gates + n * count, count, words - n < ROWS ? words - n : ROWS);
}

// The distinct numbers among ids, which are not below 0, in ascending order, and for each id the place of its own.
// Returns how many there are; -1 if memory ran out, -2 if a number is below 0 or so large that a bit for each number up
// to it would cost too much.
constexpr int64_t LARGEST_TABLE = 1 << 16;
int64_t matchloom_distinct(const int64_t *ids, int64_t count, int64_t *distinct, int64_t *places) {
    int64_t most = -1, least = 0, found = 0;
    for (int64_t n = 0; n < count; n++) most = ids[n] > most ? ids[n] : most, least = ids[n] < least ? ids[n] : least;
    const int64_t words = most / 64 + 1;
    if (least < 0 || words > LARGEST_TABLE + 64 * count) return -2;
    struct Word {
        uint64_t bits;
        int64_t before;  // how many numbers there are in the words before
    } *table = static_cast<Word *>(calloc(words, sizeof(Word)));
    if (!table) return -1;
    for (int64_t n = 0; n < count; n++) table[ids[n] / 64].bits |= uint64_t(1) << ids[n] % 64;
    for (int64_t w = 0; w < words; w++) {
        table[w].before = found;
        for (uint64_t left = table[w].bits; left; left &= left - 1) distinct[found++] = w * 64 + __builtin_ctzll(left);
    }
    for (int64_t n = 0; n < count; n++) {
        const Word &own = table[ids[n] / 64];
        places[n] = own.before + __builtin_popcountll(own.bits & ((uint64_t(1) << ids[n] % 64) - 1));
    }
    free(table);
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
