// Products of sparse questions with sparse or dense tables, and the best rows of an inverted index.
//
// Every sum runs over a question's columns in their order, one addition at a time and never fused with its product: a
// score is the same to the bit alone or among others, on every processor, and as numpy computes it where this is absent
// (matchloom/lexical/columns.py).

#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace {

// out [questions][rows] = sum over a question's columns of value * column; the table is stored by columns.
template <typename T>
void columns_dot(const int64_t *starts, const int32_t *rows, const T *data, int64_t count, int64_t questions,
                 const int64_t *bounds, const int64_t *columns, const double *values, double *out) {
    memset(out, 0, sizeof(double) * questions * count);
    for (int64_t q = 0; q < questions; q++, out += count)
        for (int64_t i = bounds[q]; i < bounds[q + 1]; i++) {
            const double value = values[i];
            const int64_t end = starts[columns[i] + 1];
            for (int64_t e = starts[columns[i]]; e < end; e++) {
                const double added = double(data[e]) * value;
                out[rows[e]] += added;
            }
        }
}

// out [chosen] = sum over a row's columns of its value * question[column]; the table is stored by rows.
template <typename T>
void rows_dot(const int64_t *starts, const int32_t *columns, const T *data, int64_t chosen, const int64_t *rows,
              const double *question, double *out) {
    for (int64_t n = 0; n < chosen; n++) {
        double sum = 0;
        for (int64_t e = starts[rows[n]]; e < starts[rows[n] + 1]; e++) {
            const double added = double(data[e]) * question[columns[e]];
            sum += added;
        }
        out[n] = sum;
    }
}

// out [questions][width] = sum over a question's columns of value * table[column]; the table is dense.
template <typename T>
void dense_dot(const T *table, int64_t width, int64_t questions, const int64_t *bounds, const int64_t *columns,
               const double *values, double *out) {
    memset(out, 0, sizeof(double) * questions * width);
    for (int64_t q = 0; q < questions; q++, out += width)
        for (int64_t i = bounds[q]; i < bounds[q + 1]; i++) {
            const double value = values[i];
            const T *row = table + columns[i] * width;
            for (int64_t j = 0; j < width; j++) {
                const double added = double(row[j]) * value;
                out[j] += added;
            }
        }
}

struct Term {
    int64_t column;
    double times, most;  // the most that it can add to a row
};

struct Found {
    double score;
    int32_t row;
};

inline bool better(const Found &a, const Found &b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

constexpr int64_t LONG = 8;  // a column that more than one in so many rows has is long
constexpr int64_t MANY = 1 << 16;  // entries of long columns from which it pays to leave them out

// The best of what is offered, as a heap with the worst of them on top.
struct Best {
    Found *found;
    int64_t most, count = 0;
    void offer(double score, int32_t row) {
        if (count < most) {
            found[count++] = {score, row};
            std::push_heap(found, found + count, better);
        } else if (better({score, row}, found[0])) {
            std::pop_heap(found, found + count, better);
            found[count - 1] = {score, row};
            std::push_heap(found, found + count, better);
        }
    }
    double least() const { return count < most ? 0 : found[0].score; }
};

template <typename T>
void add_column(const int64_t *starts, const int32_t *rows, const T *data, const Term &term, double *sums) {
    for (int64_t e = starts[term.column]; e < starts[term.column + 1]; e++) {
        const double added = double(data[e]) * term.times;
        sums[rows[e]] += added;
    }
}

// The rows with the highest sums of times * column, best first; equal ones by row. Rows without any of the terms, and
// those that are not alive, are left out. Columns that very many rows have can add little to any: where no row can be
// among the best by them alone, they are looked up only for rows that can (MaxScore: Turtle and Flood 1995).
template <typename T>
int64_t best_rows(const int64_t *starts, const int32_t *rows, const T *data, const double *highest, int64_t count_rows,
                  int64_t terms, const int64_t *columns, const double *times, int64_t most, const uint8_t *alive,
                  double *sums, int64_t *out) {
    Term *order = static_cast<Term *>(malloc(sizeof(Term) * (terms + 1)));
    Found *heap = static_cast<Found *>(malloc(sizeof(Found) * (most + 1)));
    int32_t *chosen = nullptr;
    if (!order || !heap) {
        free(order), free(heap);
        return -1;
    }
    int64_t lengthy = 0, first = terms;  // of the terms behind `first`, which are the long ones
    for (int64_t i = 0; i < terms; i++) order[i] = {columns[i], times[i], times[i] * highest[columns[i]]};
    const auto length = [starts](const Term &term) { return starts[term.column + 1] - starts[term.column]; };
    const auto is_short = [&](const Term &term) { return length(term) * LONG <= count_rows; };
    first = std::stable_partition(order, order + terms, is_short) - order;
    double rest = 0;
    for (int64_t i = first; i < terms; i++) lengthy += length(order[i]), rest += order[i].most;
    for (int64_t i = 0; i < first; i++) add_column(starts, rows, data, order[i], sums);
    Best best{heap, most};
    double bar = 0;
    if (lengthy >= MANY) {
        for (int64_t row = 0; row < count_rows; row++)
            if (sums[row] > best.least() && (!alive || alive[row])) best.offer(sums[row], int32_t(row));
        bar = (best.least() - rest) * (1 - 1e-9);  // rounding must not leave out a best row
    }
    if (rest * (1 + 1e-9) < best.least()) {  // no row that has long columns alone is among the best
        int64_t kept = 0;
        for (int64_t row = 0; row < count_rows; row++) kept += sums[row] >= bar && sums[row] > 0;
        chosen = static_cast<int32_t *>(malloc(sizeof(int32_t) * (kept + 1)));
        if (!chosen) {
            memset(sums, 0, sizeof(double) * count_rows);
            free(order), free(heap);
            return -1;
        }
        kept = 0;
        for (int64_t row = 0; row < count_rows; row++)
            if (sums[row] >= bar && sums[row] > 0) chosen[kept++] = int32_t(row);
        for (int64_t i = first; i < terms; i++) {
            const int32_t *from = rows + starts[order[i].column], *to = rows + starts[order[i].column + 1];
            const int32_t *place = from;
            for (int64_t n = 0; n < kept; n++) {
                place = std::lower_bound(place, to, chosen[n]);
                if (place == to) break;
                if (*place != chosen[n]) continue;
                const double added = double(data[place - rows]) * order[i].times;
                sums[chosen[n]] += added;
            }
        }
        best.count = 0;
        for (int64_t n = 0; n < kept; n++)
            if (!alive || alive[chosen[n]]) best.offer(sums[chosen[n]], chosen[n]);
    } else {
        for (int64_t i = first; i < terms; i++) add_column(starts, rows, data, order[i], sums);
        best.count = 0;
        for (int64_t row = 0; row < count_rows; row++)
            if (sums[row] > best.least() && (!alive || alive[row])) best.offer(sums[row], int32_t(row));
    }
    memset(sums, 0, sizeof(double) * count_rows);
    std::sort_heap(heap, heap + best.count, better);
    for (int64_t n = 0; n < best.count; n++) out[n] = heap[n].row;
    free(order), free(heap), free(chosen);
    return best.count;
}

// The rows of `sums` that are not zero, in their order, when the rows of some columns were added to it: those of columns
// with few rows in all are remembered, else all sums are looked at.
int64_t add_columns(const int64_t *starts, const int32_t *rows, const float *data, int64_t count, int64_t terms,
                    const int64_t *columns, const int64_t *without, int64_t excluded, float *sums, int32_t *touched) {
    int64_t entries = excluded, found = 0;
    for (int64_t i = 0; i < terms; i++) entries += starts[columns[i] + 1] - starts[columns[i]];
    const bool few = entries * 16 < count;
    for (int64_t i = 0; i < terms; i++)
        for (int64_t e = starts[columns[i]]; e < starts[columns[i] + 1]; e++) {
            if (few && sums[rows[e]] == 0) touched[found++] = rows[e];
            sums[rows[e]] += data[e];
        }
    for (int64_t i = 0; i < excluded; i++) {
        if (few && sums[without[i]] == 0) touched[found++] = int32_t(without[i]);
        sums[without[i]] = -1;
    }
    if (few) {
        std::sort(touched, touched + found);
        return found;
    }
    for (int64_t row = 0; row < count; row++) {
        touched[found] = int32_t(row);
        found += sums[row] != 0;
    }
    return found;
}

// The `most` rows with the highest sums, of those that are not excluded (below 0); of equal ones the first. What is above
// the least of them comes first, then what is equal to it, by row each; all by row where fewer are left. How many.
int64_t highest_of(const float *sums, int64_t rows, const int32_t *touched, int64_t count, int64_t most, float *heap,
                   int64_t *out) {
    int64_t above = 0, excluded = 0, found = 0;
    float cut = 0;  // the least of the highest, 0 as long as there are fewer
    for (int64_t n = 0; n < count; n++) {
        const float sum = sums[touched[n]];
        excluded += sum < 0;
        if (sum <= cut) continue;
        if (above == most) std::pop_heap(heap, heap + above--, std::greater<float>());
        heap[above++] = sum;
        std::push_heap(heap, heap + above, std::greater<float>());
        if (above == most) cut = heap[0];
    }
    if (rows - excluded < most || most >= rows) {
        for (int64_t row = 0; row < rows; row++)
            if (sums[row] >= 0) out[found++] = row;
        return found;
    }
    for (int64_t n = 0; n < count; n++)
        if (sums[touched[n]] > cut) out[found++] = touched[n];
    if (cut > 0) {
        for (int64_t n = 0; n < count && found < most; n++)
            if (sums[touched[n]] == cut) out[found++] = touched[n];
    } else {
        for (int64_t row = 0; row < rows && found < most; row++)
            if (sums[row] == 0) out[found++] = row;
    }
    return found;
}

}  // namespace

extern "C" {

// For each question the `most[q]` rows, at least one, with the highest sums of its columns in single precision, without
// some rows, as `highest_of` orders them. A column may come twice; all data are above 0. `sizes` says how many there are
// of each; in `out` they follow each other. -1 if memory ran out.
int matchloom_highest_rows(const int64_t *starts, const int32_t *rows, const float *data, int64_t count,
                           int64_t questions, const int64_t *bounds, const int64_t *columns, const int64_t *most,
                           const int64_t *without_bounds, const int64_t *without, int64_t *sizes, int64_t *out) {
    float *sums = static_cast<float *>(calloc(count + 1, sizeof(float)));
    float *heap = static_cast<float *>(malloc(sizeof(float) * (count + 1)));
    int32_t *touched = static_cast<int32_t *>(malloc(sizeof(int32_t) * (count + 1)));
    const bool there = sums && heap && touched;
    for (int64_t q = 0; there && q < questions; q++) {
        const int64_t left_out = without_bounds[q];
        const int64_t found = add_columns(starts, rows, data, count, bounds[q + 1] - bounds[q], columns + bounds[q],
                                          without + left_out, without_bounds[q + 1] - left_out, sums, touched);
        sizes[q] = highest_of(sums, count, touched, found, most[q], heap, out);
        out += sizes[q];
        for (int64_t n = 0; n < found; n++) sums[touched[n]] = 0;
    }
    free(sums), free(heap), free(touched);
    return there ? 0 : -1;
}

// `wide` says that data are doubles, else floats.
void matchloom_columns_dot(int wide, const int64_t *starts, const int32_t *rows, const void *data, int64_t count,
                           int64_t questions, const int64_t *bounds, const int64_t *columns, const double *values,
                           double *out) {
    if (wide)
        columns_dot(starts, rows, static_cast<const double *>(data), count, questions, bounds, columns, values, out);
    else
        columns_dot(starts, rows, static_cast<const float *>(data), count, questions, bounds, columns, values, out);
}

void matchloom_rows_dot(int wide, const int64_t *starts, const int32_t *columns, const void *data, int64_t chosen,
                        const int64_t *rows, const double *question, double *out) {
    if (wide)
        rows_dot(starts, columns, static_cast<const double *>(data), chosen, rows, question, out);
    else
        rows_dot(starts, columns, static_cast<const float *>(data), chosen, rows, question, out);
}

void matchloom_dense_dot(int wide, const void *table, int64_t width, int64_t questions, const int64_t *bounds,
                         const int64_t *columns, const double *values, double *out) {
    if (wide)
        dense_dot(static_cast<const double *>(table), width, questions, bounds, columns, values, out);
    else
        dense_dot(static_cast<const float *>(table), width, questions, bounds, columns, values, out);
}

// `sums` [rows] are zeros, and are zeros again afterwards. How many rows were found, or -1 if memory ran out.
int64_t matchloom_best_rows(int wide, const int64_t *starts, const int32_t *rows, const void *data,
                            const double *highest, int64_t count, int64_t terms, const int64_t *columns,
                            const double *times, int64_t most, const uint8_t *alive, double *sums, int64_t *out) {
    if (wide)
        return best_rows(starts, rows, static_cast<const double *>(data), highest, count, terms, columns, times, most,
                         alive, sums, out);
    return best_rows(starts, rows, static_cast<const float *>(data), highest, count, terms, columns, times, most,
                     alive, sums, out);
}

// out [chosen] = the product of each chosen row of a dense table with a vector. Eight sums run side by side, and are
// added up at the end, in their order; `size` is a multiple of eight.
void matchloom_vectors_dot(const float *table, int64_t size, int64_t chosen, const int64_t *rows, const double *vector,
                           double *out) {
    for (int64_t n = 0; n < chosen; n++) {
        const float *row = table + (rows ? rows[n] : n) * size;
        double lanes[8] = {0};
        for (int64_t i = 0; i < size; i += 8)
            for (int64_t j = 0; j < 8; j++) {
                const double added = double(row[i + j]) * vector[i + j];
                lanes[j] += added;
            }
        double sum = lanes[0];
        for (int64_t j = 1; j < 8; j++) sum += lanes[j];
        out[n] = sum;
    }
}

}  // extern "C"
