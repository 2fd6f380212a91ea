// Random tables and questions through the sparse kernels, every array exactly as large as promised, for sanitizers and
// valgrind. `make fuzz` runs it with many seeds. By hand:
//
//   g++ -std=c++17 -g -O1 -mavx512f -fsanitize=address,undefined tests/kernels/sanitize_sparse.cpp -o sanitize && ./sanitize
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/sparse.cpp"

namespace {

std::mt19937 draw;

int number(int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); }

// A table by columns, with `rows` rows and a share of them in each column.
template <typename T>
struct Made {
    std::vector<int64_t> starts{0};
    std::vector<int32_t> places;
    std::vector<T> data;
    std::vector<double> highest;

    Made(int rows, int columns, bool long_ones) {
        for (int column = 0; column < columns; column++) {
            const int share = long_ones && column % 2 ? 95 : number(0, 30);
            double most = 0;
            for (int row = 0; row < rows; row++)
                if (number(0, 99) < share) {
                    places.push_back(row), data.push_back(T(number(1, 4)) / 4);
                    most = std::max(most, double(data.back()));
                }
            starts.push_back(int64_t(places.size())), highest.push_back(most);
        }
        places.shrink_to_fit(), data.shrink_to_fit(), starts.shrink_to_fit();
    }
};

// The best rows in single precision, some of them left out: as many as there are, none of those, none twice.
int highest_round() {
    const int rows = number(1, 400), columns = number(1, 12), questions = number(1, 4);
    const Made<float> made(rows, columns, number(0, 1));
    std::vector<int64_t> bounds{0}, asked, most, left_out{0}, without, sizes(questions);
    int64_t room = 0;
    for (int q = 0; q < questions; q++) {
        for (int n = number(0, 5); n > 0; n--) asked.push_back(number(0, columns - 1));
        for (int n = number(0, 5); n > 0; n--) without.push_back(number(0, rows - 1));
        bounds.push_back(int64_t(asked.size())), left_out.push_back(int64_t(without.size()));
        most.push_back(number(1, 2 * rows));
        room += std::min<int64_t>(most.back(), rows);
    }
    asked.shrink_to_fit(), without.shrink_to_fit();
    std::vector<int64_t> out(room);
    if (matchloom_highest_rows(made.starts.data(), made.places.data(), made.data.data(), rows, questions, bounds.data(),
                               asked.data(), most.data(), left_out.data(), without.data(), sizes.data(), out.data()))
        return 11;
    const int64_t *found = out.data();
    for (int q = 0; q < questions; found += sizes[q++]) {
        std::vector<bool> seen(rows);
        for (int64_t i = left_out[q]; i < left_out[q + 1]; i++) seen[without[i]] = true;
        int64_t left = rows;
        for (bool one : seen) left -= one;
        if (sizes[q] != std::min<int64_t>(most[q], left)) return 12;
        for (int64_t n = 0; n < sizes[q]; n++) {
            if (found[n] < 0 || found[n] >= rows || seen[found[n]]) return 13;
            seen[found[n]] = true;
        }
    }
    return 0;
}

template <typename T>
int round_of(bool large) {
    const int rows = large ? 40000 : number(1, 90), columns = large ? 4 : number(1, 12), questions = number(1, 3);
    const Made<T> made(rows, columns, large);
    std::vector<int64_t> bounds{0}, asked;
    std::vector<double> values;
    for (int q = 0; q < questions; q++) {
        for (int column = 0; column < columns; column++)
            if (number(0, 2)) asked.push_back(column), values.push_back(number(1, 3));
        bounds.push_back(int64_t(asked.size()));
    }
    const int wide = sizeof(T) == sizeof(double);
    std::vector<double> out(size_t(questions) * rows), sums(rows), dense(rows);
    matchloom_columns_dot(wide, made.starts.data(), made.places.data(), made.data.data(), rows, questions, bounds.data(),
                          asked.data(), values.data(), out.data());
    for (int q = 0; q < questions; q++) {
        const int64_t terms = bounds[q + 1] - bounds[q], most = number(1, large ? 100 : 2 * rows);
        std::vector<int64_t> own(asked.begin() + bounds[q], asked.begin() + bounds[q + 1]), best(most);
        std::vector<double> times(values.begin() + bounds[q], values.begin() + bounds[q + 1]);
        std::vector<uint8_t> alive(rows);
        for (uint8_t &one : alive) one = uint8_t(number(0, 3) > 0);
        const uint8_t *mask = number(0, 1) ? alive.data() : nullptr;
        const int64_t found = matchloom_best_rows(wide, made.starts.data(), made.places.data(), made.data.data(),
                                                  made.highest.data(), rows, terms, own.data(), times.data(), most, mask,
                                                  sums.data(), best.data());
        if (found < 0 || found > most) return 1;
        for (int64_t n = 0; n < found; n++) {
            const double score = out[size_t(q) * rows + best[n]];
            if (best[n] < 0 || best[n] >= rows || (mask && !mask[best[n]]) || !(score > 0)) return 2;
            if (n && out[size_t(q) * rows + best[n - 1]] < score) return 3;
        }
        for (double sum : sums)
            if (sum != 0) return 4;
    }
    // The same table, read as rows of `columns` lists over `rows` places.
    std::vector<int64_t> chosen(number(0, 9));
    for (int64_t &one : chosen) one = number(0, columns - 1);
    std::vector<double> question(rows, 0.5), told(chosen.size());
    matchloom_rows_dot(wide, made.starts.data(), made.places.data(), made.data.data(), int64_t(chosen.size()),
                       chosen.data(), question.data(), told.data());
    const int width = number(1, 9);
    std::vector<T> table(size_t(columns) * width, T(1));
    std::vector<double> wider(size_t(questions) * width);
    matchloom_dense_dot(wide, table.data(), width, questions, bounds.data(), asked.data(), values.data(), wider.data());
    const int size = 8 * number(1, 4);
    std::vector<float> vectors(size_t(columns) * size, 1.0f);
    std::vector<double> vector(size, 0.25), every(columns), some(chosen.size());
    matchloom_vectors_dot(vectors.data(), size, columns, nullptr, vector.data(), every.data());
    matchloom_vectors_dot(vectors.data(), size, int64_t(chosen.size()), chosen.data(), vector.data(), some.data());
    return every[0] == size * 0.25 ? 0 : 5;
}

}  // namespace

int main(int count, char **words) {
    draw.seed(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    for (int round = 0; round < 120; round++) {
        const bool large = round % 40 == 39;
        const int wrong = number(0, 1) ? round_of<float>(large) : round_of<double>(large);
        if (wrong) return wrong;
        if (const int lacking = highest_round()) return lacking;
    }
    puts("no error");
}
