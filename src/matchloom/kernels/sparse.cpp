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

// The rows with the highest sums of times * column, best first; equal ones by row. Rows without any of the terms, and
// those that are not alive, are left out. Terms that can add little come last, and are looked up only for rows that can
// still be among the best (MaxScore: Turtle and Flood 1995).
template <typename T>
int64_t best_rows(const int64_t *starts, const int32_t *rows, const T *data, const double *highest, int64_t terms,
                  const int64_t *columns, const double *times, int64_t most, const uint8_t *alive, double *sums,
                  int64_t *out) {
    Term *order = static_cast<Term *>(malloc(sizeof(Term) * (terms + 1)));
    int64_t total = 0;
    for (int64_t i = 0; i < terms; i++) total += starts[columns[i] + 1] - starts[columns[i]];
    int32_t *touched = static_cast<int32_t *>(malloc(sizeof(int32_t) * (total + 1)));
    Found *found = static_cast<Found *>(malloc(sizeof(Found) * (total + 1)));
    if (!order || !touched || !found) {
        free(order), free(touched), free(found);
        return -1;
    }
    for (int64_t i = 0; i < terms; i++) order[i] = {columns[i], times[i], times[i] * highest[columns[i]]};
    std::sort(order, order + terms, [](const Term &a, const Term &b) {
        return a.most > b.most || (a.most == b.most && a.column < b.column);
    });
    double rest = 0, least = 0;
    for (int64_t i = 0; i < terms; i++) rest += order[i].most;
    int64_t count = 0, done = 0;
    for (; done < terms; done++) {
        const int64_t begin = starts[order[done].column], end = starts[order[done].column + 1];
        if (count >= most && end - begin > count / 8) {
            int64_t kept = 0;
            for (int64_t n = 0; n < count; n++)
                if (!alive || alive[touched[n]]) found[kept++] = {sums[touched[n]], touched[n]};
            if (kept >= most) {
                std::nth_element(found, found + (most - 1), found + kept, better);
                least = found[most - 1].score;
                if (rest < least) break;  // no row without the terms so far can be among the best
            }
        }
        const double t = order[done].times;
        for (int64_t e = begin; e < end; e++) {
            const double added = double(data[e]) * t;
            double &sum = sums[rows[e]];
            if (sum == 0) touched[count++] = rows[e];
            sum += added;
        }
        rest -= order[done].most;
    }
    int64_t kept = 0;
    const double bar = done < terms ? (least - rest) * (1 - 1e-9) : 0;  // rounding must not leave out a best row
    for (int64_t n = 0; n < count; n++) {
        const int32_t row = touched[n];
        if ((!alive || alive[row]) && sums[row] >= bar && sums[row] > 0) found[kept++] = {sums[row], row};
    }
    for (int64_t n = 0; n < count; n++) sums[touched[n]] = 0;
    for (; done < terms; done++) {
        const int32_t *from = rows + starts[order[done].column], *to = rows + starts[order[done].column + 1];
        const T *own = data + starts[order[done].column];
        for (int64_t n = 0; n < kept; n++) {
            const int32_t *place = std::lower_bound(from, to, found[n].row);
            if (place != to && *place == found[n].row) {
                const double added = double(own[place - from]) * order[done].times;
                found[n].score += added;
            }
        }
    }
    const int64_t wanted = std::min(most, kept);
    std::partial_sort(found, found + wanted, found + kept, better);
    for (int64_t n = 0; n < wanted; n++) out[n] = found[n].row;
    free(order), free(touched), free(found);
    return wanted;
}

}  // namespace

extern "C" {

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
                            const double *highest, int64_t terms, const int64_t *columns, const double *times,
                            int64_t most, const uint8_t *alive, double *sums, int64_t *out) {
    if (wide)
        return best_rows(starts, rows, static_cast<const double *>(data), highest, terms, columns, times, most, alive,
                         sums, out);
    return best_rows(starts, rows, static_cast<const float *>(data), highest, terms, columns, times, most, alive, sums,
                     out);
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
