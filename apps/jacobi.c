/* Jacobi iteration for Laplace's equation on a square grid with fixed edges.
 *
 * Two grids are read and written in turn; threads own bands of rows and meet at one barrier per iteration.
 * Each thread initialises its own band (parallel first touch), or with -o 1 main all of both, as naive programs do;
 * main creates all threads and waits.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'n', "side of the grid", 256, 2048, 1, 50000, 0},
    {'i', "iterations", 20, 20, 1, 1000000, 0},
    {'o', "1: main initialises everything", 0, 0, 0, 1, 0},
};
static struct app app = {"jacobi", "Jacobi iteration on a square grid", specs, 3, NULL, NULL};

static long n, iterations;
static bool one_initialises;
static double *grid[2]; /* (n + 2) x (n + 2) each */

static double initial(long i, long j)
{
    bool edge = i == 0 || j == 0 || i == n + 1 || j == n + 1;
    return edge ? 1.0 + 0.01 * (double)((i * 5 + j * 11) % 97) : 0.0;
}

/* Initialises the rows `from` to `to`. */
static void initialise(long from, long to)
{
    long width = n + 2;
    for (long i = from; i <= to; i++)
        for (long j = 0; j < width; j++)
            grid[0][i * width + j] = grid[1][i * width + j] = initial(i, j);
}

static void work(int self)
{
    long width = n + 2, first, last;
    my_block(n, self, &first, &last);
    if (!one_initialises) {
        /* The first and the last band include the upper and the lower edge. */
        initialise(self == 0 ? 0 : first + 1, self == threads - 1 ? n + 1 : last);
        team_barrier();
    }
    for (long step = 0; step < iterations; step++) {
        const double *old = grid[step % 2];
        double *new = grid[(step + 1) % 2];
        for (long i = first + 1; i <= last; i++)
            for (long j = 1; j <= n; j++) {
                const double *p = old + i * width + j;
                new[i * width + j] = 0.25 * (p[-width] + p[width] + p[-1] + p[1]);
            }
        team_barrier();
    }
}

/* Repeats the iteration in one thread and one grid, keeping copies of the two rows whose old values are needed. */
static void verify(const double *result)
{
    long width = n + 2;
    double *now = must_alloc(sizeof(double) * (size_t)(width * width));
    double *above = must_alloc(sizeof(double) * (size_t)width);
    double *current = must_alloc(sizeof(double) * (size_t)width);
    for (long i = 0; i < width * width; i++)
        now[i] = initial(i / width, i % width);
    for (long step = 0; step < iterations; step++) {
        for (long j = 0; j < width; j++)
            above[j] = now[j];
        for (long i = 1; i <= n; i++) {
            for (long j = 0; j < width; j++)
                current[j] = now[i * width + j];
            for (long j = 1; j <= n; j++)
                now[i * width + j] = 0.25 * (above[j] + now[(i + 1) * width + j] + current[j - 1] + current[j + 1]);
            double *swap = above;
            above = current;
            current = swap;
        }
    }
    bool same = true;
    for (long i = 0; i < width * width; i++)
        same &= fabs(now[i] - result[i]) < 1e-12;
    check(same, "equal to an iteration in place by one thread");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    iterations = specs[1].value;
    one_initialises = specs[2].value;
    size_t bytes = sizeof(double) * (size_t)((n + 2) * (n + 2));
    grid[0] = must_alloc(bytes);
    grid[1] = must_alloc(bytes);
    if (one_initialises)
        initialise(0, n + 1);
    run_team(MAIN_WAITS, work);
    const double *result = grid[iterations % 2];
    printf("result: jacobi %ld, %ld iterations: %016lx\n", n, iterations,
           (unsigned long)hash_bytes(HASH_START, result, bytes));
    if (self_check)
        verify(result);
    return 0;
}
