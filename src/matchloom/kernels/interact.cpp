// How all words of one text meet all words of another, and what is kept of it: the k largest of each channel, sums of
// kernels (KNRM), or the whole grid. layers/interactions.py, layers/meeting.py and models/knrm.py say what is asked.
//
// A cell is u'v, or with a form [u ; 1]' F_c [v ; 1] for each channel c; one sum in a fixed order (product.h), so that
// a pair's cells depend on its two texts alone. Cells live in registers, some rows and a panel of columns at a time.

#include <cmath>
#include <initializer_list>
#include <limits>

#include "product.h"

namespace {

// What a call works on, some pairs; matches kernels/native.py.
struct MeetTask {
    int64_t size, channels;            // E, C
    int64_t left_width, right_width;   // L, R: words between two texts
    int64_t begin, end;                // pairs of this task
    const int64_t *left_rows, *right_rows, *left_lengths, *right_lengths;  // of pairs; of texts
    const float *left, *right;         // [text][word][E]
    const float *form;                 // [E + 1][C][E + 1], or null: then C is 1
    int64_t relu;                      // whether cells below 0 become 0
    float *grid;                       // [pair][L][C][R], 0 outside the texts; or null
    int64_t k;                         // 0: nothing is pooled
    float *values;                     // [pair][C][k], in descending order; 0 where there are fewer cells
    int64_t *places;                   // [pair][C][k]: l * R + r; -1 where there are fewer
    int64_t kernels;                   // of KNRM; 0: none
    const float *mu, *scale;           // [kernels]: exp(-(x - mu)^2 / (2 sigma^2)) = 2^(scale (x - mu)^2)
    float *sums;                       // [pair][kernels][L], 0 behind the text
    const float *sums_gradient;        // like sums, or null
    float *cells_gradient;             // [pair][L][R], 0 outside
    const float *values_gradient;      // like values: what matchloom_meet_back starts from
    float *left_gradient, *right_gradient;  // like left and right, which may be one array; added to
    float *form_gradient;              // [C][E + 1][matchloom_form_step of E]; added to
};

class Meeting {
    const MeetTask &task;
    const int64_t E, C;
    int64_t pair = 0, L = 0, R = 0;  // the pair and the words of its texts
    float *transformed = nullptr;    // [L * C][E + 1] of one left text
    int64_t transformed_text = -1;
    vec *form_panels = nullptr, *lanes = nullptr, *row_sums = nullptr;
    int64_t lanes_text = -1;
    float *best = nullptr;           // [C][k]
    int64_t *best_places = nullptr;
    float *least = nullptr;          // what a cell of each lane must exceed, where lanes are of several channels
    const bool turned;               // lanes are the left text's words, rows the right one's: one query, many texts
    float *zeros = nullptr;

    int64_t step() const { return task.form ? E + 1 : E; }  // of the left rows
    const float *left_row(int64_t row) const {
        return task.form ? transformed + row * (E + 1) : task.left + (task.left_rows[pair] * task.left_width + row) * E;
    }
    const float *right_row(int64_t row) const {
        return task.right + (task.right_rows[pair] * task.right_width + row) * E;
    }

    struct Transform {
        Meeting &own;
        const float *from;
        template <int NV>
        void panel(int64_t first, const vec *columns) {
            const int64_t E = own.E, width = own.C * (E + 1);
            for (int64_t row = 0; row < own.L; row += ROWS_AT_ONCE) {
                const float *rows[ROWS_AT_ONCE];
                Tile<NV> tile;
                for (int r = 0; r < ROWS_AT_ONCE; r++) {
                    rows[r] = from + (row + r < own.L ? row + r : own.L - 1) * E;
                    for (int v = 0; v < NV; v++) tile.at[r][v] = columns[E * NV + v];  // the form's last row meets 1
                }
                add_product<NV>(tile, rows, E, columns);
                for (int r = 0; r < ROWS_AT_ONCE && row + r < own.L; r++)
                    for (int v = 0; v < NV; v++) {
                        const int64_t at = first + v * WIDTH;
                        store_some(own.transformed + (row + r) * width + at, tile.at[r][v], width - at);
                    }
            }
        }
    };

    // The left text in the eyes of the form: for each word and channel what the right words are multiplied with.
    void transform() {
        const int64_t text = task.left_rows[pair], width = C * (E + 1);
        if (text == transformed_text) return;
        transformed_text = text;
        const vec *columns = form_panels;
        for (int64_t first = 0; first < width; first += PANEL * WIDTH) {
            const int nv = panel_vecs(width, first);
            for_panel(nv, Transform{*this, task.left + text * task.left_width * E}, first, columns);
            columns += nv * (E + 1);
        }
    }

    // The words of the lanes' side as panels [k][NV], and where they start: the numbers that meet the right words' 1.
    struct PackLanes {
        Meeting &own;
        template <int NV>
        void panel(int64_t first, vec *to) {
            const float *rows[NV * WIDTH];
            const int64_t last = own.turned ? own.L * own.C : own.R;
            for (int64_t n = 0; n < NV * WIDTH; n++)
                rows[n] = first + n >= last ? own.zeros : own.turned ? own.left_row(first + n) : own.right_row(first + n);
            to_lanes<NV>(rows, int(own.turned ? own.step() : own.E), to);
        }
    };

    int64_t lanes_step() const { return turned ? step() : E; }

    void pack_lanes() {
        const int64_t text = turned ? task.left_rows[pair] : task.right_rows[pair];
        if (text == lanes_text) return;
        lanes_text = text;
        const int64_t last = turned ? L * C : R;
        vec *to = lanes;
        for (int64_t first = 0; first < last; first += PANEL * WIDTH) {
            const int nv = panel_vecs(last, first);
            for_panel(nv, PackLanes{*this}, first, to);
            to += nv * lanes_step();
        }
    }

    // A new candidate for the largest of its channel. What is NaN counts as larger than any number, and stays.
    void keep(int64_t channel, float value, int64_t place) {
        float *own = best + channel * task.k;
        int64_t *own_places = best_places + channel * task.k, at = task.k - 1;
        if (own[at] != own[at]) return;
        for (; at > 0 && !(value <= own[at - 1] || own[at - 1] != own[at - 1]); at--)
            own[at] = own[at - 1], own_places[at] = own_places[at - 1];
        own[at] = value, own_places[at] = place;
        if (turned && C > 1)
            for (int64_t lane = channel; lane < L * C; lane += C) least[lane] = own[task.k - 1];
    }

    void pool(int64_t row, int64_t first, vec cells, int64_t count) {
        const unsigned valid = count < WIDTH ? (1u << count) - 1 : WIDTH == 32 ? ~0u : (1u << WIDTH) - 1;
        const int64_t k = task.k;
        const vec least_kept = turned && C > 1 ? load(least + first) : splat(best[(turned ? 0 : row % C) * k + k - 1]);
        for (unsigned found = not_at_most(cells, least_kept) & valid; found; found &= found - 1) {
            const int lane = __builtin_ctz(found);
            const int64_t left = turned ? first + lane : row, right = turned ? row : first + lane;
            if (!(cells[lane] <= best[left % C * k + k - 1])) keep(left % C, cells[lane], left / C * task.right_width + right);
        }
    }

    void kernels(int64_t row, vec cells, int64_t count) {
        const ivec numbers = lane_numbers();
        for (int64_t n = 0; n < task.kernels; n++) {
            const vec apart = cells - task.mu[n];
            const vec value = power_of_two(apart * task.scale[n] * apart);
            vec *sum = row_sums + row * task.kernels + n;
            *sum = *sum + (numbers < int32_t(count < WIDTH ? count : WIDTH) ? value : vec{});
        }
    }

    // d sum / d cell = 2 ln(2) scale (x - mu) 2^(scale (x - mu)^2)
    void kernels_back(int64_t row, int64_t first, vec cells, int64_t count) {
        const float *up = task.sums_gradient + pair * task.kernels * task.left_width + row;
        vec sum{};
        for (int64_t n = 0; n < task.kernels; n++, up += task.left_width) {
            const vec apart = cells - task.mu[n];
            sum += apart * power_of_two(apart * task.scale[n] * apart) * (*up * task.scale[n]);
        }
        sum *= 2.0f * 0.69314718f;
        store_some(task.cells_gradient + (pair * task.left_width + row) * task.right_width + first, sum, count);
    }

    static ivec lane_numbers() {
        ivec numbers;
        for (int lane = 0; lane < WIDTH; lane++) numbers[lane] = lane;
        return numbers;
    }

    struct Cells {
        Meeting &own;
        template <int NV>
        void panel(int64_t first, int64_t last, const vec *columns) {
            const MeetTask &task = own.task;
            const int64_t E = own.E, rows_count = own.turned ? own.R : own.L * own.C;
            for (int64_t row = 0; row < rows_count; row += ROWS_AT_ONCE) {
                const float *rows[ROWS_AT_ONCE];
                Tile<NV> tile;
                for (int r = 0; r < ROWS_AT_ONCE; r++) {
                    const int64_t n = row + r < rows_count ? row + r : rows_count - 1;
                    rows[r] = own.turned ? own.right_row(n) : own.left_row(n);
                    for (int v = 0; v < NV; v++)
                        tile.at[r][v] = !task.form ? vec{} : own.turned ? columns[E * NV + v] : splat(rows[r][E]);
                }
                add_product<NV>(tile, rows, E, columns);
                for (int r = 0; r < ROWS_AT_ONCE && row + r < rows_count; r++)
                    for (int v = 0; v < NV; v++) {
                        const int64_t at = first + v * WIDTH, count = last - at;
                        vec cells = tile.at[r][v];
                        if (task.relu) cells = greatest_or_nan(cells);
                        if (task.grid) own.write(row + r, at, cells, count);
                        if (task.k) own.pool(row + r, at, cells, count);
                        if (task.cells_gradient)
                            own.kernels_back(row + r, at, cells, count);
                        else if (task.kernels)
                            own.kernels(row + r, cells, count);
                    }
            }
        }
        static vec greatest_or_nan(vec x) { return x < vec{} ? vec{} : x; }
    };

    void write(int64_t row, int64_t first, vec cells, int64_t count) {
        const int64_t width = task.right_width;
        store_some(task.grid + (pair * task.left_width * C + row) * width + first, cells, count);
    }

    void start() {
        L = task.left_lengths[task.left_rows[pair]], R = task.right_lengths[task.right_rows[pair]];
        for (int64_t n = 0; n < C * task.k; n++) best[n] = -std::numeric_limits<float>::infinity(), best_places[n] = -1;
        for (int64_t lane = 0; least && lane < L * C; lane++) least[lane] = -std::numeric_limits<float>::infinity();
        const int64_t width = task.right_width, all = task.left_width * C * width;
        if (task.grid) memset(task.grid + pair * all, 0, all * sizeof(float));
        if (task.cells_gradient) memset(task.cells_gradient + pair * all, 0, all * sizeof(float));
        if (task.kernels) memset(row_sums, 0, L * task.kernels * sizeof(vec));
    }

    void finish() {
        float *values = task.values + pair * C * task.k;
        int64_t *places = task.places + pair * C * task.k;
        for (int64_t n = 0; n < C * task.k; n++) {
            values[n] = best_places[n] < 0 ? 0.0f : best[n];
            places[n] = best_places[n];
        }
        if (task.kernels && !task.cells_gradient)
            for (int64_t n = 0; n < task.kernels; n++) {
                float *to = task.sums + (pair * task.kernels + n) * task.left_width;
                for (int64_t l = 0; l < task.left_width; l++) to[l] = l < L ? total(row_sums[l * task.kernels + n]) : 0.0f;
            }
    }

  public:
    explicit Meeting(const MeetTask &task)
        : task(task), E(task.size), C(task.channels), turned(task.k && task.end - task.begin > 1 && one_left()) {}

    bool one_left() const {
        for (int64_t n = task.begin; n < task.end; n++)
            if (task.left_rows[n] != task.left_rows[task.begin]) return false;
        return true;
    }

    int run() {
        const int64_t width = C * (E + 1), most = turned ? task.left_width * C : task.right_width;
        const int64_t row_vecs = task.kernels ? task.left_width * task.kernels : 0;
        const int64_t form_vecs = task.form ? whole_vecs(width) * (E + 1) : 0;
        const int64_t transformed_vecs = task.form ? whole_vecs(task.left_width * width) : 0;
        Scratch scratch(form_vecs + transformed_vecs + whole_vecs(most) * (E + 1) + row_vecs + whole_vecs(E + 1) +
                        whole_vecs(C * task.k) + whole_vecs(2 * C * task.k) + whole_vecs(turned ? most : 0));
        if (scratch.failed()) return 1;
        form_panels = scratch.take(form_vecs);
        transformed = reinterpret_cast<float *>(scratch.take(transformed_vecs));
        lanes = scratch.take(whole_vecs(most) * (E + 1)), row_sums = scratch.take(row_vecs);
        zeros = reinterpret_cast<float *>(scratch.take(whole_vecs(E + 1)));
        best = reinterpret_cast<float *>(scratch.take(whole_vecs(C * task.k)));
        best_places = reinterpret_cast<int64_t *>(scratch.take(whole_vecs(2 * C * task.k)));
        if (turned) least = reinterpret_cast<float *>(scratch.take(whole_vecs(most)));
        vec *to = form_panels;
        for (int64_t first = 0; task.form && first < width; first += PANEL * WIDTH) {
            const int nv = panel_vecs(width, first);
            pack_panel(task.form, E + 1, width, first, nv, to);
            to += nv * (E + 1);
        }
        for (pair = task.begin; pair < task.end; pair++) {
            start();
            if (task.form) transform();
            pack_lanes();
            const int64_t last = turned ? L * C : R;
            const vec *columns = lanes;
            for (int64_t first = 0; first < last; first += PANEL * WIDTH) {
                const int nv = panel_vecs(last, first);
                for_panel(nv, Cells{*this}, first, last, columns);
                columns += nv * lanes_step();
            }
            finish();
        }
        return 0;
    }
};

// The gradient of the k largest cells, which touches their two words and the form alone. In the order of the pairs.
class Back {
    const MeetTask &task;
    const int64_t E, C, k;
    static constexpr int64_t CELLS = 64;  // whose rows are in the cache together
    int64_t step = 0;                     // of their rows: E + 1, up to a whole vector
    float *u = nullptr, *v = nullptr, *out = nullptr;      // [CELLS][step]: u and v times the cell's gradient, with its 1
    float *plain_u = nullptr;                              // u with its 1
    float *right_panels = nullptr, *left_panels = nullptr; // a channel's form as what u and v are multiplied with
    int64_t at_left[CELLS], at_right[CELLS];

    // The cell of a place if a gradient reaches it.
    bool find(int64_t pair, int64_t n, int64_t &left, int64_t &right, float &up) const {
        const int64_t place = task.places[n];
        up = task.values_gradient[n];
        if (place < 0 || up == 0.0f || (task.relu && task.values[n] <= 0.0f)) return false;
        left = (task.left_rows[pair] * task.left_width + place / task.right_width) * E;
        right = (task.right_rows[pair] * task.right_width + place % task.right_width) * E;
        return true;
    }

    static void add_times(float *to, const float *x, float by, int64_t count) {
        for (int64_t n = 0; n < count; n += WIDTH)
            store_some(to + n, multiply_add(splat(by), load_some(x + n, count - n), load_some(to + n, count - n)), count - n);
    }

    void cells_alone() const {
        int64_t left, right;
        float up;
        for (int64_t pair = task.begin; pair < task.end; pair++)
            for (int64_t n = pair * k; n < (pair + 1) * k; n++)
                if (find(pair, n, left, right, up)) {
                    if (task.left_gradient) add_times(task.left_gradient + left, task.right + right, up, E);
                    if (task.right_gradient) add_times(task.right_gradient + right, task.left + left, up, E);
                }
    }

    // Some cells of one channel.
    void some(int64_t channel, int64_t count) const {
        if (task.form_gradient)
            add_outer(task.form_gradient + channel * (E + 1) * step, plain_u, 1, step, E + 1, v, step, count);
        if (task.left_gradient) {
            multiply(v, count, step, right_panels, E, nullptr, out);
            for (int64_t n = 0; n < count; n++) add_times(task.left_gradient + at_left[n], out + n * E, 1.0f, E);
        }
        if (task.right_gradient) {
            multiply(u, count, step, left_panels, E, nullptr, out);
            for (int64_t n = 0; n < count; n++) add_times(task.right_gradient + at_right[n], out + n * E, 1.0f, E);
        }
    }

    void pack(int64_t channel) const {
        const float *form = task.form + channel * (E + 1);
        float *to_left = right_panels, *to_right = left_panels;
        for (int64_t first = 0; first < E; first += PANEL * WIDTH) {
            const int64_t width = panel_vecs(E, first) * WIDTH;
            for (int64_t n = 0; n < step; n++)
                for (int64_t o = first; o < first + width; o++) {
                    const bool there = n <= E && o < E;
                    *to_left++ = there ? form[o * C * (E + 1) + n] : 0.0f;
                    *to_right++ = there ? form[n * C * (E + 1) + o] : 0.0f;
                }
        }
    }

    void with_form() {
        int64_t right;
        float up;
        for (int64_t channel = 0; channel < C; channel++) {
            int64_t count = 0;
            pack(channel);
            for (int64_t pair = task.begin; pair < task.end; pair++)
                for (int64_t n = (pair * C + channel) * k; n < (pair * C + channel + 1) * k; n++) {
                    if (!find(pair, n, at_left[count], right, up)) continue;
                    at_right[count] = right;
                    const float *own_u = task.left + at_left[count], *own_v = task.right + right;
                    float *to_u = u + count * step, *to_v = v + count * step, *to_plain = plain_u + count * step;
                    for (int64_t e = 0; e < E; e++) to_plain[e] = own_u[e], to_u[e] = up * own_u[e], to_v[e] = up * own_v[e];
                    to_plain[E] = 1.0f, to_u[E] = up, to_v[E] = up;
                    if (++count == CELLS) some(channel, count), count = 0;
                }
            some(channel, count);
        }
    }

  public:
    explicit Back(const MeetTask &task) : task(task), E(task.size), C(task.channels), k(task.k) {}
    static int64_t form_step(int64_t size) { return whole_vecs(size + 1) * WIDTH; }

    int run() {
        if (!task.form) return cells_alone(), 0;
        step = form_step(E);
        const int64_t rows = CELLS * step / WIDTH, panels = whole_vecs(E) * step;
        Scratch scratch(4 * rows + 2 * panels);
        if (scratch.failed()) return 1;
        for (float **one : {&u, &v, &plain_u, &out}) *one = reinterpret_cast<float *>(scratch.take(rows));
        for (float **one : {&right_panels, &left_panels}) *one = reinterpret_cast<float *>(scratch.take(panels));
        with_form();
        return 0;
    }
};

}  // namespace

extern "C" {

int64_t matchloom_meet_task_bytes() { return sizeof(MeetTask); }

// 0, or 1 if memory ran out.
int matchloom_meet(const MeetTask *task) { return Meeting(*task).run(); }

// The gradient of what it pooled, likewise; and the numbers of a row of the form's.
int matchloom_meet_back(const MeetTask *task) { return Back(*task).run(); }
int64_t matchloom_form_step(int64_t size) { return Back::form_step(size); }

// How many numbers a matrix takes as panels, and that: w[input * input_step + output * output_step].
int64_t matchloom_packed(int64_t inputs, int64_t outputs) { return whole_vecs(outputs) * WIDTH * inputs; }
void matchloom_pack(const float *w, int64_t inputs, int64_t outputs, int64_t input_step, int64_t output_step, float *to) {
    for (int64_t first = 0; first < outputs; first += PANEL * WIDTH) {
        const int64_t width = panel_vecs(outputs, first) * WIDTH;
        for (int64_t k = 0; k < inputs; k++)
            for (int64_t n = first; n < first + width; n++)
                *to++ = n < outputs ? w[k * input_step + n * output_step] : 0.0f;
    }
}

// x [rows][inputs], w as panels, bias [outputs] or null, out [rows][outputs].
void matchloom_product(const float *x, int64_t rows, int64_t inputs, const float *w, int64_t outputs, const float *bias,
                       float *out) {
    multiply(x, rows, inputs, w, outputs, bias, out);
}

// Rows of a length of one: x / max(|x|, least). x and out [rows][numbers]; squares are added up in one order.
void matchloom_normalize(const float *x, int64_t rows, int64_t numbers, float least, float *out) {
    for (int64_t row = 0; row < rows; row++, x += numbers, out += numbers) {
        vec sum{};
        for (int64_t k = 0; k < numbers; k += WIDTH) {
            const vec own = load_some(x + k, numbers - k);
            sum = multiply_add(own, own, sum);
        }
        const float length = std::sqrt(total(sum)), by = length > least || length != length ? length : least;
        for (int64_t k = 0; k < numbers; k += WIDTH)
            store_some(out + k, load_some(x + k, numbers - k) / by, numbers - k);
    }
}

// The gradient of that: with y = x / |x|, (up - y (y'up)) / |x|.
void matchloom_normalize_back(const float *x, const float *up, int64_t rows, int64_t numbers, float least, float *out) {
    for (int64_t row = 0; row < rows; row++, x += numbers, up += numbers, out += numbers) {
        vec squares{}, along{};
        for (int64_t k = 0; k < numbers; k += WIDTH) {
            const vec own = load_some(x + k, numbers - k), other = load_some(up + k, numbers - k);
            squares = multiply_add(own, own, squares), along = multiply_add(own, other, along);
        }
        const float length = std::sqrt(total(squares)), by = length > least || length != length ? length : least;
        const float part = length < least ? 0.0f : total(along) / (by * by);
        for (int64_t k = 0; k < numbers; k += WIDTH) {
            const vec own = load_some(x + k, numbers - k), other = load_some(up + k, numbers - k);
            store_some(out + k, (other - part * own) / by, numbers - k);
        }
    }
}
}
