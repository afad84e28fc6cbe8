/* Poisson's equation in a periodic cube by multigrid cycles.
 *
 * Each operation on a grid is a parallel loop over its planes, also on the coarse grids, whose planes are fewer than
 * the threads and whose loops are short. The greatest error of each cycle is a reduction that no rounding disturbs.
 */
#include "common.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "points along an edge of the cube (a power of 2)", 16, 128, 4, 1024, 0},
    {'i', "cycles", 3, 10, 1, 1000, 0},
};
static struct app app = {"omp-multigrid", "Poisson's equation by multigrid, OpenMP", specs, 2, NULL, NULL};

enum { MAX_LEVELS = 10, SMOOTH = 2 };

struct level {
    long n;
    double *value, *right, *other; /* [x][y][z] */
};

static struct level level[MAX_LEVELS];
static int levels;
static long cycles;
static double first_error, last_error;

/* For each line of points: what is around the line (x, y) in each of the four directions. */
struct lines {
    const double *own, *left, *right, *up, *down;
};

static struct lines around(const struct level *l, const double *of, long x, long y)
{
    long n = l->n, mask = n - 1;
    const double *plane = of + x * n * n;
    return (struct lines){plane + y * n, of + (((x - 1) & mask) * n + y) * n, of + (((x + 1) & mask) * n + y) * n,
                          plane + ((y - 1) & mask) * n, plane + ((y + 1) & mask) * n};
}

/* The sum of the six neighbours of a point. */
static double neighbours(const struct lines *a, long z, long mask)
{
    return (a->left[z] + a->right[z]) + (a->up[z] + a->down[z]) + (a->own[(z - 1) & mask] + a->own[(z + 1) & mask]);
}

/* A step of Jacobi's method, damped: from `value` to `other`, which change places. */
static void relax(struct level *l)
{
    long n = l->n;
#pragma omp parallel for num_threads(threads)
    for (long x = 0; x < n; x++)
        for (long y = 0; y < n; y++) {
            struct lines a = around(l, l->value, x, y);
            const double *right = l->right + (x * n + y) * n;
            double *to = l->other + (x * n + y) * n;
            for (long z = 0; z < n; z++)
                to[z] = a.own[z] + 0.8 * ((neighbours(&a, z, n - 1) - right[z]) / 6 - a.own[z]);
        }
    double *kept = l->value;
    l->value = l->other;
    l->other = kept;
}

/* Puts what the equation lacks into `other`; its greatest value. */
static double find_error(struct level *l)
{
    double worst = 0;
    long n = l->n;
#pragma omp parallel for num_threads(threads) reduction(max : worst)
    for (long x = 0; x < n; x++)
        for (long y = 0; y < n; y++) {
            struct lines a = around(l, l->value, x, y);
            const double *right = l->right + (x * n + y) * n;
            double *to = l->other + (x * n + y) * n;
            for (long z = 0; z < n; z++) {
                to[z] = right[z] - (neighbours(&a, z, n - 1) - 6 * a.own[z]);
                worst = fabs(to[z]) > worst ? fabs(to[z]) : worst;
            }
        }
    return worst;
}

/* The mean of eight points; squares are four times as large on the coarser grid. */
static void restrict_error(const struct level *fine, struct level *coarse)
{
    long n = coarse->n, m = fine->n;
#pragma omp parallel for num_threads(threads)
    for (long x = 0; x < n; x++)
        for (long y = 0; y < n; y++)
            for (long z = 0; z < n; z++) {
                const double *from = fine->other + (2 * x * m + 2 * y) * m + 2 * z;
                double near = from[0] + from[1] + from[m] + from[m + 1];
                double far = from[m * m] + from[m * m + 1] + from[m * m + m] + from[m * m + m + 1];
                coarse->right[(x * n + y) * n + z] = 4 * (near + far) / 8;
                coarse->value[(x * n + y) * n + z] = 0;
            }
}

/* Adds the coarse grid's correction, interpolated: three quarters of the nearer point in each direction. */
static void correct(struct level *fine, const struct level *coarse)
{
    long n = fine->n, m = coarse->n;
#pragma omp parallel for num_threads(threads)
    for (long x = 0; x < n; x++)
        for (long y = 0; y < n; y++) {
            long cx = x / 2, cy = y / 2, dx = (cx + (x & 1 ? 1 : -1)) & (m - 1), dy = (cy + (y & 1 ? 1 : -1)) & (m - 1);
            const double *a = coarse->value + (cx * m + cy) * m, *b = coarse->value + (dx * m + cy) * m;
            const double *c = coarse->value + (cx * m + dy) * m, *d = coarse->value + (dx * m + dy) * m;
            double *to = fine->value + (x * n + y) * n;
            for (long z = 0; z < n; z++) {
                long cz = z / 2, dz = (cz + (z & 1 ? 1 : -1)) & (m - 1);
                double near = 0.75 * (0.75 * a[cz] + 0.25 * b[cz]) + 0.25 * (0.75 * c[cz] + 0.25 * d[cz]);
                double far = 0.75 * (0.75 * a[dz] + 0.25 * b[dz]) + 0.25 * (0.75 * c[dz] + 0.25 * d[dz]);
                to[z] += 0.75 * near + 0.25 * far;
            }
        }
}

static void cycle(int k)
{
    for (int i = 0; i < SMOOTH; i++)
        relax(&level[k]);
    if (k == levels - 1)
        return;
    find_error(&level[k]);
    restrict_error(&level[k], &level[k + 1]);
    cycle(k + 1);
    correct(&level[k], &level[k + 1]);
    for (int i = 0; i < SMOOTH; i++)
        relax(&level[k]);
}

static void work(void)
{
    first_error = find_error(&level[0]);
    for (long i = 0; i < cycles; i++) {
        cycle(0);
        last_error = find_error(&level[0]);
    }
}

static double *must_have(long points)
{
    double *memory = calloc((size_t)points, sizeof *memory);
    if (!memory)
        die("cannot allocate %ld points", points);
    return memory;
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    long n = specs[0].value;
    cycles = specs[1].value;
    if (n & (n - 1))
        die("-n wants a power of 2, not %ld", n);
    for (long side = n; side >= 2; side /= 2) {
        long points = side * side * side;
        level[levels++] = (struct level){side, must_have(points), must_have(points), must_have(points)};
    }
    /* As many sources as sinks: what flows out of a periodic cube flows in. */
    struct random r = {61};
    for (int i = 0; i < 20; i++)
        level[0].right[random_bits(&r) % (uint64_t)(n * n * n)] += i % 2 ? 1 : -1;
    run_alone(work);
    size_t bytes = sizeof(double) * (size_t)(n * n * n);
    printf("result: omp-multigrid %ld, %ld cycles, error %.3e: %016lx\n", n, cycles, last_error,
           (unsigned long)hash_bytes(HASH_START, level[0].value, bytes));
    if (self_check)
        check(last_error < first_error * pow(0.5, (double)cycles), "each cycle halves the error at least");
    return 0;
}
