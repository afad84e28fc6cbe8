// Variables of shapes that C++ adds.
#include "says.h"
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

namespace ocean {

struct Empty {};

struct Base {
    virtual ~Base() = default;
    long id = 1;
};

template <typename T>
struct Cell : Base, Empty {
    std::array<T, 4> flow{};
    std::array<std::array<T, 3>, 2> nested{};
    std::atomic<int> users{0};
    T depth = 0;
    static inline long made = 0;
    T sum(int by);
};

Cell<double> cells[10];
std::vector<Cell<double>> heap(20);
std::unique_ptr<double[]> owned{new double[8]};
int &alias = *new int(1);

namespace {
struct {
    int left, right;
} hidden;
} // namespace

template <typename T>
__attribute__((noinline)) T Cell<T>::sum(int by)
{
    static long calls;
    calls += by;
    SAY_AS(calls, "ocean::Cell<double>::sum::calls");
    SAY_HERE("ocean::Cell<double>::sum(int)");
    return flow[by] + calls;
}

__attribute__((noinline)) void step(long by, double *to)
{
    *to += by;
    SAY_HERE("ocean::step(long, double*)");
}

static __attribute__((noinline)) void own(double *to)
{
    *to += 1;
    SAY_HERE("ocean::own(double*)");
}

} // namespace ocean

int main(int argc, char **)
{
    say_images();
    using namespace ocean;
    SAY_AS(cells[3].flow[2], "ocean::cells[3].flow[2]");
    SAY_AS(cells[9].nested[1][2], "ocean::cells[9].nested[1][2]");
    SAY_AS(cells[9].users, "ocean::cells[9].users");
    SAY_AS(cells[1].id, "ocean::cells[1].id");
    SAY_AS(cells[1].depth, "ocean::cells[1].depth");
    SAY_AS(hidden.right, "ocean::(anonymous namespace)::hidden.right");
    SAY_AS(Cell<double>::made, "ocean::Cell<double>::made");
    Cell<double>::made += argc;
    hidden.right = argc;
    printf("pointer\t%lx\tocean::heap\t%lu\n", (unsigned long)&heap, (unsigned long)sizeof heap[0]);
    printf("target\t%lx\t[7].flow[1]\t%lu\n", (unsigned long)&heap,
           (unsigned long)((char *)&heap[7].flow[1] - (char *)heap.data()));
    printf("pointer\t%lx\tocean::owned\t%lu\n", (unsigned long)&owned, (unsigned long)sizeof owned[0]);
    double sum = cells[0].sum(argc);
    step(argc, &sum);
    own(&sum);
    return sum == 0;
}
