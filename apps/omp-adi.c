/* Diffusion with a varying conductivity in a cube, by alternating directions: lines along x, then y, then z.
 *
 * A time step is many short parallel loops: the right-hand side in three loops, a tridiagonal system for each line
 * of each direction, and the addition of what they give. Some loops are regions of their own, the others share one.
 */
#include "common.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "points along an edge of the cube", 10, 64, 3, 1000, 0},
    {'i', "time steps", 6, 40, 1, 1000000, 0},
};
static struct app app = {"omp-adi", "diffusion by alternating directions, OpenMP", specs, 2, NULL, NULL};

enum { FIELDS = 3, MAX_POINTS = 1000 };

struct point {
    double field[FIELDS];
};

static long n, steps;
static struct point *value, *change;
static double *conductivity;
static const double time_step = 0.3;

static long at(long i, long j, long k)
{
    return (i * n + j) * n + k;
}

/* What flows into a point from its neighbours `apart` elements away. */
static void add_flow(long p, long apart)
{
    for (int f = 0; f < FIELDS; f++) {
        double forth = conductivity[p] * (value[p + apart].field[f] - value[p].field[f]);
        double back = conductivity[p - apart] * (value[p].field[f] - value[p - apart].field[f]);
        change[p].field[f] += time_step * (forth - back);
    }
}

/* The right-hand side, from the values and from the conductivity that depends on them. */
static void find_change(void)
{
#pragma omp parallel num_threads(threads)
    {
#pragma omp for
        for (long i = 0; i < n; i++)
            for (long p = at(i, 0, 0); p < at(i + 1, 0, 0); p++) {
                double square = 0;
                for (int f = 0; f < FIELDS; f++)
                    square += value[p].field[f] * value[p].field[f];
                conductivity[p] = 1 / (1 + square);
                change[p] = (struct point){{0}};
            }
#pragma omp for
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                for (long k = 1; k < n - 1; k++)
                    add_flow(at(i, j, k), n * n);
#pragma omp for
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                for (long k = 1; k < n - 1; k++) {
                    add_flow(at(i, j, k), n);
                    add_flow(at(i, j, k), 1);
                }
    }
}

/* Solves the tridiagonal system of one line, whose points are `apart` elements from each other. */
static void solve_line(long first, long apart)
{
    double factor[MAX_POINTS];
    factor[0] = 0;
    for (long i = 1; i < n - 1; i++) {
        long p = first + i * apart;
        double low = -time_step * conductivity[p - apart], high = -time_step * conductivity[p];
        double pivot = 1 - low - high - low * factor[i - 1];
        factor[i] = high / pivot;
        for (int f = 0; f < FIELDS; f++)
            change[p].field[f] = (change[p].field[f] - (i > 1 ? low * change[p - apart].field[f] : 0)) / pivot;
    }
    for (long i = n - 3; i > 0; i--) {
        long p = first + i * apart;
        for (int f = 0; f < FIELDS; f++)
            change[p].field[f] -= factor[i] * change[p + apart].field[f];
    }
}

static void solve_x(void)
{
#pragma omp parallel for num_threads(threads)
    for (long j = 1; j < n - 1; j++)
        for (long k = 1; k < n - 1; k++)
            solve_line(at(0, j, k), n * n);
}

static void solve_y(void)
{
#pragma omp parallel for num_threads(threads)
    for (long i = 1; i < n - 1; i++)
        for (long k = 1; k < n - 1; k++)
            solve_line(at(i, 0, k), n);
}

static void solve_z(void)
{
#pragma omp parallel for num_threads(threads) collapse(2)
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            solve_line(at(i, j, 0), 1);
}

static void add_change(void)
{
#pragma omp parallel for num_threads(threads)
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            for (long k = 1; k < n - 1; k++)
                for (int f = 0; f < FIELDS; f++)
                    value[at(i, j, k)].field[f] += change[at(i, j, k)].field[f];
}

static void work(void)
{
    for (long step = 0; step < steps; step++) {
        find_change();
        solve_x();
        solve_y();
        solve_z();
        add_change();
    }
}

/* Hot and cold blocks inside, and nothing on the faces of the cube. */
static void initialise(void)
{
    struct random r = {31};
    for (long p = 0; p < n * n * n; p++) {
        long i = p / (n * n), j = p / n % n, k = p % n;
        bool inside = i > 0 && j > 0 && k > 0 && i < n - 1 && j < n - 1 && k < n - 1;
        for (int f = 0; f < FIELDS; f++)
            value[p].field[f] = inside ? (double)((i / 3 + j / 3 + k / 3 + f) % 2) + 0.1 * random_unit(&r) : 0;
    }
}

static double energy(void)
{
    double sum = 0;
    for (long p = 0; p < n * n * n; p++)
        for (int f = 0; f < FIELDS; f++)
            sum += value[p].field[f] * value[p].field[f];
    return sum;
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    steps = specs[1].value;
    size_t points = (size_t)(n * n * n);
    value = must_alloc(sizeof *value * points);
    change = must_alloc(sizeof *change * points);
    conductivity = must_alloc(sizeof *conductivity * points);
    initialise();
    double before = energy();
    run_alone(work);
    printf("result: omp-adi %ld, %ld steps: %016lx\n", n, steps,
           (unsigned long)hash_bytes(HASH_START, value, sizeof *value * points));
    if (self_check)
        check(energy() > 0 && energy() < before, "differences even out");
    return 0;
}
