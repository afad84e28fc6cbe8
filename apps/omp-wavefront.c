/* A triangular system on a cube, forwards and backwards: each point depends on three neighbours.
 *
 * Threads own blocks of rows of each plane. A thread computes its rows of a plane when the thread before it has done
 * that plane, so that a front of work goes through the cube. Each thread tells how many planes it has done in a flag
 * of its own, which the next one looks at again and again: atomic reads and writes with `flush`, no locks.
 */
#include "common.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'n', "points along an edge of the cube", 16, 144, 3, 1000, 0},
    {'i', "iterations", 2, 12, 1, 1000000, 0},
};
static struct app app = {"omp-wavefront", "sweeps by flags and flush, OpenMP", specs, 2, NULL, NULL};

static long n, iterations;
static double *value, *right;

/* Planes that a thread has done in all sweeps together. */
static struct {
    long planes;
    char apart[128 - sizeof(long)]; /* in lines of the cache of their own */
} done[MAX_THREADS];

static double *at(double *of, long i, long j, long k)
{
    return of + (i * n + j) * n + k;
}

/* Waits until a thread has done so many planes. */
static void wait_for(int thread, long planes)
{
    for (long tries = 1;; tries++) {
        long seen;
#pragma omp atomic read
        seen = done[thread].planes;
        if (seen >= planes)
            break;
        /* With more threads than processors the other one may need this one. */
        if (tries % 1000 == 0)
            sched_yield();
    }
#pragma omp flush
}

/* The thread has done one more than `before`. */
static void tell(int thread, long before)
{
    long *flag = &done[thread].planes;
#pragma omp flush
#pragma omp atomic write
    *flag = before + 1;
#pragma omp flush
}

/* Rows first .. last - 1 of plane i; the neighbours that have been computed are on the side of `step`. */
static void sweep_rows(long i, long first, long last, long step)
{
    for (long row = 0; row < last - first; row++) {
        long j = step > 0 ? first + row : last - 1 - row;
        for (long column = 1; column < n - 1; column++) {
            long k = step > 0 ? column : n - 1 - column;
            double *v = at(value, i, j, k);
            double near = v[-step * n * n] + v[-step * n] + v[-step], far = v[step * n * n] + v[step * n] + v[step];
            *v += 1.2 * ((*at(right, i, j, k) + near + far) / 6.2 - *v);
        }
    }
}

static void work(void)
{
#pragma omp parallel num_threads(threads)
    {
        int self = omp_get_thread_num();
        long first = 1 + (n - 2) * self / threads, last = 1 + (n - 2) * (self + 1) / threads, planes = 0;
        for (long iteration = 0; iteration < iterations; iteration++) {
            for (long i = 1; i < n - 1; i++) {
                if (self > 0)
                    wait_for(self - 1, planes + 1);
                sweep_rows(i, first, last, 1);
                tell(self, planes++);
            }
#pragma omp barrier
            for (long i = n - 2; i > 0; i--) {
                if (self < threads - 1)
                    wait_for(self + 1, planes + 1);
                sweep_rows(i, first, last, -1);
                tell(self, planes++);
            }
#pragma omp barrier
        }
    }
}

static double greatest_error(void)
{
    double worst = 0;
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            for (long k = 1; k < n - 1; k++) {
                const double *v = at(value, i, j, k);
                double sum = v[-n * n] + v[n * n] + v[-n] + v[n] + v[-1] + v[1];
                worst = fmax(worst, fabs(*at(right, i, j, k) + sum - 6.2 * *v));
            }
    return worst;
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    iterations = specs[1].value;
    size_t bytes = sizeof(double) * (size_t)(n * n * n);
    value = must_alloc(bytes);
    right = must_alloc(bytes);
    struct random r = {41};
    for (long p = 0; p < n * n * n; p++) {
        value[p] = 0;
        right[p] = random_unit(&r) - 0.5;
    }
    double before = greatest_error();
    run_alone(work);
    printf("result: omp-wavefront %ld, %ld iterations: %016lx\n", n, iterations,
           (unsigned long)hash_bytes(HASH_START, value, bytes));
    if (self_check)
        check(greatest_error() < before / 2, "the error becomes smaller");
    return 0;
}
