/* `atomic` on what lies across the end of a page or of a line, which is loosely packed: each instruction changes two pages at once, under one lock. */
#include "../harness.h"
#include <omp.h>

typedef int __attribute__((aligned(1))) loose_int;
typedef long __attribute__((aligned(1))) loose_long;
typedef double __attribute__((aligned(1))) loose_double;

static _Alignas(PAGE) unsigned char bytes[4 * PAGE];

/* On a stack, across the line that the parts of it have in common. */
static long on_a_stack(void)
{
    _Alignas(64) unsigned char own[128] = {0};
    loose_long *sum = (loose_long *)(own + 61);
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < iterations; i++)
#pragma omp atomic
        *sum += 3;
    return *sum;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 400);
    loose_int *first = (loose_int *)(bytes + PAGE - 1), *line = (loose_int *)(bytes + 62);
    loose_long *second = (loose_long *)(bytes + 2 * PAGE - 4);
    loose_double *third = (loose_double *)(bytes + 3 * PAGE - 3);
    for (int round = 0; round < 5; round++) {
#pragma omp parallel for num_threads(threads)
        for (long i = 0; i < iterations; i++) {
#pragma omp atomic
            *first += 0x10001;
#pragma omp atomic
            *second += 0x100000001;
#pragma omp atomic
            *third += 0.5;
#pragma omp atomic
            *line += 0x10001;
        }
        long all = (round + 1) * iterations;
        EXPECT((int)(all * 0x10001), *first);
        EXPECT(all * 0x100000001, *second);
        EXPECT(all, *third * 2);
        EXPECT((int)(all * 0x10001), *line);
        EXPECT(3 * iterations, on_a_stack());
    }
    return pass();
}
