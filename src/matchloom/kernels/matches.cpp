// Exact matches of the words of two texts, as layers/lexical.py defines them: the k largest IDFs, and their sums.

#include <cstdint>

extern "C" {

// Keys [text][slices][words] of either side, idf [text][slices][left_width] of the left one. A key that stands in both
// texts of a pair counts once. values [pair][slices][k], in descending order, then 0; sums [pair][slices][2]: of the
// IDFs and of their squares.
void matchloom_matches(const int64_t *left_keys, const double *idf, const int64_t *right_keys, int64_t slices,
                       int64_t left_width, int64_t right_width, const int64_t *left_rows, const int64_t *right_rows,
                       const int64_t *left_lengths, const int64_t *right_lengths, int64_t pairs, int64_t k,
                       double *values, double *sums) {
    for (int64_t n = 0; n < pairs; n++) {
        const int64_t left = left_rows[n], right = right_rows[n], L = left_lengths[left], R = right_lengths[right];
        for (int64_t slice = 0; slice < slices; slice++, values += k, sums += 2) {
            const int64_t *ours = left_keys + (left * slices + slice) * left_width;
            const int64_t *theirs = right_keys + (right * slices + slice) * right_width;
            const double *weights = idf + (left * slices + slice) * left_width;
            double total = 0, squares = 0;
            for (int64_t at = 0; at < k; at++) values[at] = 0;
            for (int64_t i = 0; i < L; i++) {
                int64_t j = 0, before = 0;
                while (j < R && theirs[j] != ours[i]) j++;
                if (j == R) continue;
                while (ours[before] != ours[i]) before++;
                if (before < i) continue;
                const double weight = weights[i];
                total += weight, squares += weight * weight;
                int64_t at = k;
                for (; at > 0 && weight > values[at - 1]; at--)
                    if (at < k) values[at] = values[at - 1];
                if (at < k) values[at] = weight;
            }
            sums[0] = total, sums[1] = squares;
        }
    }
}
}
