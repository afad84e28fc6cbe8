/* OpenMP: variables that are both firstprivate and lastprivate, for which compilers put a barrier at the beginning of the construct, inside
 * it; linear variables; and lastprivate ones that get the last value that was assigned, beside task reductions. */
#include "../harness.h"
#include <omp.h>

enum { COUNT = 500 };

static int values[COUNT];

/* The numbers of threads and iterations make every schedule give each thread some, and some threads none. */
static void loops(int count, int start)
{
    int first = start, last = start, assigned = -1, line = start, taken = 0;
#pragma omp parallel for firstprivate(first) lastprivate(first) schedule(dynamic)
    for (int i = 0; i < count; i++)
        first = values[i] + i;
    if (first != values[count - 1] + count - 1)
        fail("dynamic: %d", first);
    first = start;
#pragma omp parallel for firstprivate(first) lastprivate(first) schedule(guided, 3) reduction(+ : taken)
    for (int i = 0; i < count; i++) {
        if (first == start)
            taken++;
        first = values[i] + i + 1;
    }
    if (first != values[count - 1] + count || taken < 1 || taken > threads)
        fail("guided: %d, %d threads", first, taken);
#pragma omp parallel for linear(line : 4)
    for (int i = 0; i < count; i++) {
        if (line != start + 4 * i)
            fail("linear: %d is %d", i, line);
        line += 4;
    }
    if (line != start + 4 * count)
        fail("linear: %d at the end", line);
#pragma omp parallel sections firstprivate(last) lastprivate(last)
    {
#pragma omp section
        last += 1;
#pragma omp section
        last += 2;
#pragma omp section
        last += 3;
    }
    /* The thread may have executed those before. */
    if (last < start + 3 || last > start + 6)
        fail("sections: %d", last);
#pragma omp parallel for lastprivate(conditional : assigned) schedule(runtime)
    for (int i = 0; i < count; i++)
        if (values[i] % 3 == 0)
            assigned = i;
    int expected = -1;
    for (int i = 0; i < count; i++)
        if (values[i] % 3 == 0)
            expected = i;
    if (expected >= 0 && assigned != expected)
        fail("conditional: %d, not %d", assigned, expected);
}

/* The threads of these constructs have two kinds of memory in common. */
static void beside_reductions(int count)
{
    int assigned = -1, sum = 0, turns = 0;
#pragma omp parallel
    {
#pragma omp for lastprivate(conditional : assigned) reduction(task, + : sum) schedule(static, 2)
        for (int i = 0; i < count; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += values[i];
            if (i % 7 == 2)
                assigned = i;
        }
#pragma omp for ordered(1) reduction(task, + : sum)
        for (int i = 0; i < count; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += values[i];
#pragma omp ordered depend(sink : i - 1)
            if (turns++ != i)
                fail("turn %d is %d", i, turns - 1);
#pragma omp ordered depend(source)
        }
    }
    int expected = 0;
    for (int i = 0; i < count; i++)
        expected += 2 * values[i];
    if (sum != expected || assigned != (count - 3) / 7 * 7 + 2)
        fail("%d, not %d; the last is %d", sum, expected, assigned);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 3);
    omp_set_num_threads(threads);
    for (int round = 0; round < iterations; round++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = (i * 37 + round) % 100;
        for (int count = 3; count <= 100; count += 24)
            loops(count, round - 1);
        loops(COUNT, 1000);
        beside_reductions(50);
    }
    return pass();
}
