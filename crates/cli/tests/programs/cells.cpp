// Data that threads share, made as C++ programs make it: with new, in vectors, in namespaces and as members of classes.
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace model {

constexpr int threads = 4, rounds = 40, page = 4096;

struct Cell {
    double heat = 1;
    long visits = 0;
};

// Each thread visits every fourth cell.
std::vector<Cell> cells;

// Each thread has numbers of its own.
double *numbers;
constexpr int own = 2 * page / sizeof(double);

struct Rates {
    double rate[page / sizeof(double)];
};
// Nobody changes them.
std::unique_ptr<Rates> rates;

struct Board {
    alignas(page) static volatile long turns[threads];
};
volatile long Board::turns[threads];

void work(int self) {
    for (int round = 0; round < rounds; round++) {
        for (size_t cell = self; cell < cells.size(); cell += threads)
            cells[cell].visits++;
        for (int i = 0; i < own; i++)
            numbers[self * own + i] += rates->rate[i % 100];
        Board::turns[self] = Board::turns[self] + 1;
    }
}

}  // namespace model

int main() {
    using namespace model;
    cells.resize(page * 4 / sizeof(Cell));
    numbers = new double[threads * own]();
    rates = std::make_unique<Rates>();
    for (double &rate : rates->rate) rate = 2;
    // Whoever has started goes to another phase with the others.
    long visits = 0, turns = 0;
    double sum = 0;
    for (int phase = 0; phase < 8; phase++) {
        std::vector<std::thread> all;
        for (int self = 0; self < threads; self++) all.emplace_back(work, self);
        for (std::thread &thread : all) thread.join();
    }
    for (const Cell &cell : cells) visits += cell.visits;
    for (int i = 0; i < threads * own; i++) sum += numbers[i];
    for (int i = 0; i < threads; i++) turns += Board::turns[i];
    std::printf("%ld %.0f %ld\n", visits, sum, turns);
}
