// The steps of a search between its words and its hits: features of a text, BM25 of some rows, scores, the best of them.
//
// Every sum runs in an order that depends on its own question and row alone, and no product is fused with its sum: the
// same bits alone or among others, on every processor, and as numpy computes them where this is absent
// (matchloom/lexical/ranking.py).

#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int64_t LANES = 8;

// The sum of f(0), f(1), ...: eight sums side by side, added up in their order.
template <typename F>
double sum_of(int64_t count, F f) {
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int64_t j = 0; j < LANES; j++) lanes[j] += f(i + j);
    for (int64_t j = 0; i + j < count; j++) lanes[j] += f(i + j);
    double sum = lanes[0];
    for (int64_t j = 1; j < LANES; j++) sum += lanes[j];
    return sum;
}

struct Scored {
    double score;
    int64_t place;
};

inline bool before(const Scored &a, const Scored &b) {
    return a.score > b.score || (a.score == b.score && a.place < b.place);
}

template <typename T>
double row_dot(const int64_t *starts, const int32_t *places, const T *data, int64_t row, const double *question) {
    double sum = 0;
    for (int64_t e = starts[row]; e < starts[row + 1]; e++) {
        const double added = double(data[e]) * question[places[e]];
        sum += added;
    }
    return sum;
}

}  // namespace

extern "C" {

// The numbers in each text (sorted here), each once: `columns`, how often, and their value (1 + ln count) * idf over
// the length of its block, which is that of kind 2 or that of all other kinds. `logs` has 1 + ln n at n; a block's
// squares are multiplied by `factor`; `single` rounds values to single precision. Those of kind 0 are terms. Bounds have
// N + 1 numbers, the first of which is set here.
void matchloom_read_texts(int64_t texts, const int64_t *sizes, int64_t *ids, const uint8_t *kinds, const double *idf,
                          const double *logs, double factor, int single, int64_t *bounds, int64_t *columns,
                          double *values, int64_t *term_bounds, int64_t *terms, double *times) {
    int64_t size = 0, term_size = 0;
    bounds[0] = term_bounds[0] = 0;
    for (int64_t n = 0; n < texts; n++) {
        int64_t *end = ids + sizes[n];
        std::sort(ids, end);
        double squares[2] = {0, 0};
        const int64_t first = size;
        for (int64_t *id = ids; id < end;) {
            const int64_t number = *id;
            int64_t *next = id + 1;
            while (next < end && *next == number) next++;
            const int64_t count = next - id;
            const double value = logs[count] * idf[number];
            const double square = value * value;
            const uint8_t kind = kinds[number];
            squares[kind == 2] += square;
            if (kind == 0) terms[term_size] = number, times[term_size++] = double(count);
            columns[size] = number, values[size++] = value;
            id = next;
        }
        double lengths[2];
        for (int block = 0; block < 2; block++) {
            lengths[block] = std::sqrt(factor * squares[block]);
            if (lengths[block] == 0) lengths[block] = 1;
        }
        for (int64_t i = first; i < size; i++) {
            const double scaled = values[i] / lengths[kinds[columns[i]] == 2];
            values[i] = single ? double(float(scaled)) : scaled;
        }
        bounds[n + 1] = size, term_bounds[n + 1] = term_size;
        ids = end;
    }
}

// BM25 of one question, by terms (ascending) and how often it has each, with some rows of counts.
void matchloom_bm25_rows(const int64_t *starts, const int32_t *columns, const float *counts, const double *lengths,
                         int64_t chosen, const int64_t *rows, const double *idf, int64_t known, double new_idf,
                         double mean_length, double k1, double b, int64_t asked, const int64_t *terms,
                         const double *times, double *out) {
    const double rest = 1 - b;
    for (int64_t n = 0; n < chosen; n++) {
        double sum = 0;
        const int64_t row = rows[n], end = starts[row + 1];
        const double share = b * lengths[row] / mean_length;
        const double part = k1 * (rest + share);
        int64_t t = 0;
        for (int64_t e = starts[row]; e < end && t < asked; e++) {
            while (t < asked && terms[t] < columns[e]) t++;
            if (t == asked || terms[t] != columns[e]) continue;
            const double tf = double(counts[e]);
            const double weight = tf / (tf + part) * (terms[t] < known ? idf[terms[t]] : new_idf);
            const double added = weight * times[t];
            sum += added;
        }
        out[n] = sum;
    }
}

// Mean and deviation of each feature [questions * features][entries] over the entries that have it (others are NaN).
void matchloom_scale(const double *raw, int64_t rows, int64_t entries, double least, double *mean, double *spread) {
    for (int64_t n = 0; n < rows; n++, raw += entries) {
        int64_t there = 0;
        for (int64_t i = 0; i < entries; i++) there += raw[i] == raw[i];
        const double count = double(std::max<int64_t>(there, 1));
        const bool all = there == entries;
        const double middle =
            (all ? sum_of(entries, [&](int64_t i) { return raw[i]; })
                 : sum_of(entries, [&](int64_t i) { return raw[i] == raw[i] ? raw[i] : 0.0; })) / count;
        const auto apart = [&](int64_t i) {
            const double gap = raw[i] == raw[i] ? raw[i] - middle : 0.0;
            return gap * gap;
        };
        const double deviation = std::sqrt(sum_of(entries, apart) / count);
        mean[n] = middle, spread[n] = deviation < least ? 1.0 : deviation;
    }
}

// out [questions][entries] = sum over features of weight * standardised feature. Of an entry that lacks some, the others
// count for them: its sum is scaled by all weights over those that it has.
void matchloom_fuse(const double *raw, int64_t questions, int64_t features, int64_t entries, const double *mean,
                    const double *spread, const double *weights, double whole, double least, double *out) {
    for (int64_t n = 0; n < questions; n++, out += entries) {
        memset(out, 0, sizeof(double) * entries);
        bool lacking = false;
        for (int64_t e = 0; e < features; e++, raw += entries) {
            const double middle = mean[n * features + e], apart = spread[n * features + e], weight = weights[e];
            int64_t there = 0;
            for (int64_t i = 0; i < entries; i++) {
                const double added = weight * ((raw[i] - middle) / apart);
                const bool is = added == added;
                there += is;
                out[i] += is ? added : 0.0;
            }
            lacking |= there < entries;
        }
        if (!lacking) continue;
        const double *own = raw - features * entries;
        for (int64_t i = 0; i < entries; i++) {
            double found = 0;
            bool lacks = false;
            for (int64_t e = 0; e < features; e++) {
                const bool is = own[e * entries + i] == own[e * entries + i];
                found += is ? weights[e] : 0.0;
                lacks |= !is;
            }
            if (lacks && found < whole && found > 0) out[i] *= whole / std::max(found, least);
        }
    }
}

// The places of the `most` highest scores of each question, best first, equal ones by place. out [questions][most].
// counts[n] is how many there are, or -1 where all scores are equal and there are several.
// Not 0 if memory ran out.
int matchloom_best(const double *scores, int64_t questions, int64_t entries, int64_t most, int64_t *out,
                   int64_t *counts) {
    most = std::min(most, entries);
    Scored *heap = static_cast<Scored *>(malloc(sizeof(Scored) * (most + 1)));
    if (!heap) return 1;
    for (int64_t n = 0; n < questions; n++, scores += entries, out += most) {
        int64_t count = 0;
        bool equal = entries > 1;
        for (int64_t i = 0; i < entries; i++) {
            equal = equal && scores[i] == scores[0];
            const Scored one{scores[i], i};
            if (count < most) {
                heap[count++] = one;
                std::push_heap(heap, heap + count, before);
            } else if (most && scores[i] > heap[0].score) {  // of equal ones the first came first
                std::pop_heap(heap, heap + count, before);
                heap[count - 1] = one;
                std::push_heap(heap, heap + count, before);
            }
        }
        std::sort_heap(heap, heap + count, before);
        for (int64_t i = 0; i < count; i++) out[i] = heap[i].place;
        counts[n] = equal ? -1 : count;
    }
    free(heap);
    return 0;
}

// For each pair of a question (ascending) and an entry, which of the entry's known questions has the highest product
// with the question: `out`, -1 where it has none; `ties` counts those with that product. `scratch` are zeros, one for
// each feature, and are zeros again afterwards.
void matchloom_nearest(int64_t pairs, const int64_t *questions, const int64_t *entries, const int64_t *bounds,
                       const int64_t *columns, const double *values, int wide, const int64_t *starts,
                       const int32_t *places, const void *data, const int64_t *owned, const int32_t *own,
                       double *scratch, int64_t *out, int64_t *ties) {
    int64_t asked = -1;
    const auto set = [&](bool on) {
        for (int64_t i = bounds[asked]; asked >= 0 && i < bounds[asked + 1]; i++) scratch[columns[i]] = on ? values[i] : 0;
    };
    for (int64_t p = 0; p < pairs; p++) {
        if (questions[p] != asked) {
            if (asked >= 0) set(false);
            asked = questions[p];
            set(true);
        }
        double best = 0;
        out[p] = -1, ties[p] = 0;
        for (int64_t i = owned[entries[p]]; i < owned[entries[p] + 1]; i++) {
            const double found = wide ? row_dot(starts, places, static_cast<const double *>(data), own[i], scratch)
                                      : row_dot(starts, places, static_cast<const float *>(data), own[i], scratch);
            if (out[p] < 0 || found > best)
                best = found, out[p] = own[i], ties[p] = 1;
            else
                ties[p] += found == best;
        }
    }
    if (asked >= 0) set(false);
}

// For each asked stem w and each chosen row of `shares`: beta * (T(w|.) . row) + (1 - beta) * row[w], out [stems][chosen].
// T(w|.) is row w of a table; a stem behind its rows stands for itself alone. `scratch` are zeros, one for each stem, and
// are zeros again afterwards.
void matchloom_translated(int64_t stems, const int64_t *asked, double beta, int64_t rows, int wide,
                          const int64_t *starts, const int32_t *places, const void *data, int wide_shares,
                          const int64_t *share_starts, const int32_t *share_places, const void *shares, int64_t chosen,
                          const int64_t *entries, double *scratch, double *out) {
    for (int64_t n = 0; n < stems; n++, out += chosen) {
        const int64_t w = asked[n], first = w < rows ? starts[w] : 0, last = w < rows ? starts[w + 1] : 0;
        for (int64_t e = first; e < last; e++)
            scratch[places[e]] =
                beta * (wide ? static_cast<const double *>(data)[e] : double(static_cast<const float *>(data)[e]));
        scratch[w] += 1 - beta;
        for (int64_t i = 0; i < chosen; i++)
            out[i] = wide_shares ? row_dot(share_starts, share_places, static_cast<const double *>(shares), entries[i],
                                           scratch)
                                 : row_dot(share_starts, share_places, static_cast<const float *>(shares), entries[i],
                                           scratch);
        for (int64_t e = first; e < last; e++) scratch[places[e]] = 0;
        scratch[w] = 0;
    }
}

}  // extern "C"
