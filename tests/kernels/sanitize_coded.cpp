// Random vectors through the search by codes, every array exactly as large as promised, for sanitizers and valgrind.
// `make fuzz` runs it with many seeds. By hand:
//
//   g++ -std=c++17 -g -O1 -mavx512f -fsanitize=address,undefined tests/kernels/sanitize_coded.cpp -o sanitize && ./sanitize
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../../src/matchloom/kernels/coded.cpp"

namespace {

std::mt19937 draw;

int number(int low, int high) { return int(std::uniform_int_distribution<>(low, high)(draw)); }

int round_of() {
    const int size = 8 * number(1, 9), width = (size + 31) / 32 * 32, rows = number(1, 40), entries = number(1, 50);
    std::vector<float> table(size_t(rows) * size);
    for (float &one : table) one = float(number(-127, 127));
    for (int row = 0; row < rows; row++) table[size_t(row) * size] = 127;  // the step is 1, and nothing is lost
    std::vector<int64_t> starts{0};
    std::vector<int32_t> places;
    for (int n = 0; n < entries; n++) {
        for (int own = number(0, 3); own > 0; own--) places.push_back(number(0, rows - 1));
        starts.push_back(int64_t(places.size()));
    }
    places.shrink_to_fit(), starts.shrink_to_fit();
    std::vector<int8_t> codes(places.size() * width);
    for (size_t i = 0; i < places.size(); i++)
        for (int j = 0; j < size; j++) codes[i * width + j] = int8_t(table[size_t(places[i]) * size + j]);
    std::vector<float> steps(places.size(), 1.0f), errors(places.size(), 0.0f);
    std::vector<double> vector(size);
    for (double &one : vector) one = number(-9, 9) / 8.0;
    std::vector<uint8_t> alive(entries);
    for (uint8_t &one : alive) one = uint8_t(number(0, 3) > 0);
    const uint8_t *mask = number(0, 1) ? alive.data() : nullptr;
    const int64_t most = number(1, 2 * entries);
    std::vector<int64_t> best(most);
    const int64_t found = matchloom_nearest_entries(codes.data(), steps.data(), errors.data(), width, table.data(), size,
                                                    vector.data(), entries, starts.data(), places.data(), mask, most,
                                                    best.data());
    int64_t there = entries;
    if (mask) there = std::count(alive.begin(), alive.end(), 1);
    if (found != std::min(most, there)) return 1;
    for (int64_t n = 0; n < found; n++)
        if (best[n] < 0 || best[n] >= entries || (mask && !mask[best[n]])) return 2;
    return 0;
}

}  // namespace

int main(int count, char **words) {
    draw.seed(count > 1 ? strtoul(words[1], nullptr, 10) : 0);
    for (int round = 0; round < 400; round++)
        if (const int wrong = round_of()) return wrong;
    puts("no error");
}
