// OpenMP: loops of tasks whose arguments are objects, which the program's own functions copy: each task has its iterations all the same.
#include "../harness.h"
#include <omp.h>
#include <string>
#include <vector>

struct Sum {
    std::string name;
    long total = 0;
};

static std::vector<long> values(500);

static long sum(int from, int to, const Sum &start)
{
    Sum last;
    std::vector<int> seen(to);
#pragma omp parallel
#pragma omp single
#pragma omp taskloop firstprivate(start) lastprivate(last) shared(seen) num_tasks(7)
    for (int i = from; i < to; i++) {
        if (start.name != "sum of " + std::to_string(to))
            fail("%s", start.name.c_str());
        seen[i] += 1;
        last = Sum{start.name, start.total + values[i]};
    }
    long total = 0;
    for (int i = from; i < to; i++) {
        if (seen[i] != 1)
            fail("%d was seen %d times", i, seen[i]);
        total += values[i];
    }
    if (last.total != start.total + values[to - 1] || last.name != start.name)
        fail("the last of %d is %ld (%s)", to, last.total, last.name.c_str());
    return total;
}

// The loop variable is an object, too.
static long by_iterators(std::vector<long> &all)
{
    long total = 0;
    std::vector<long>::iterator place;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop lastprivate(place) reduction(+ : total)
    for (place = all.begin(); place < all.end(); place += 3)
        total += *place;
    if (place < all.end())
        fail("the loop has ended before its end");
    return total;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    for (int i = 0; i < 500; i++)
        values[i] = i * 7L % 100;
    long expected = 0;
    for (int i = 0; i < 500; i += 3)
        expected += values[i];
    if (by_iterators(values) != expected)
        fail("by iterators");
    for (int to = 10; to <= 500; to += 98)
        printf("%ld\n", sum(3, to, Sum{"sum of " + std::to_string(to), to}));
    return pass();
}
