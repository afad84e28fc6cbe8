/* OpenMP: reductions in which tasks take part, in the forms that all compilers know. */
#include "../harness.h"
#include <omp.h>

static long groups(long count)
{
    long sum = 1;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
    {
        for (int i = 1; i <= count; i++) {
#pragma omp task in_reduction(+ : sum)
            {
                sum += i;
#pragma omp task in_reduction(+ : sum)
                sum += 1000;
            }
        }
    }
    return sum;
}

static long taskloops(void)
{
    long sum = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : sum) grainsize(3)
    for (int i = 0; i < 100; i++)
        sum += i;
    return sum;
}

static long regions(void)
{
    long sum = 5;
#pragma omp parallel reduction(task, + : sum)
    {
        for (int i = 1; i <= 10; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
        if (omp_get_thread_num() == 0)
            sum += 7;
    }
    return sum;
}

static long loops(void)
{
    long sum = 2;
#pragma omp parallel
    {
#pragma omp for reduction(task, + : sum)
        for (int i = 0; i < 50; i++) {
            sum++;
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 10);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    for (long round = 0; round < iterations; round++) {
        EXPECT(1 + 1000 * 20 + 210, groups(20));
        EXPECT(4950, taskloops());
        EXPECT(5 + 55 * threads + 7, regions());
        EXPECT(2 + 50 + 1225, loops());
    }
    return pass();
}
