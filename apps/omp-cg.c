/* The least eigenvalue of a sparse random matrix, by inverse iteration with conjugate gradients.
 *
 * The matrix is symmetric and dominated by its diagonal. All of a solution is one parallel region, in which loops
 * and sums over all threads take turns. Sums are OpenMP's reductions, whose rounding depends on the number of
 * threads: what is printed of the result does not.
 */
#include "common.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "rows of the matrix", 400, 30000, 2, 10000000, 0},
    {'k', "non-zeros above the diagonal in a row, about", 6, 10, 1, 1000, 0},
    {'i', "inverse iterations", 2, 15, 1, 1000000, 0},
};
static struct app app = {"omp-cg", "conjugate gradients, OpenMP", specs, 3, NULL, NULL};

enum { STEPS = 25 };

static long rows, iterations;
static long *start, *column; /* non-zeros of row i: start[i] .. start[i + 1] - 1 */
static double *entry;
static double *x, *z, *residual, *direction, *product;
static double eigenvalue, error;

static void solve(void)
{
    double square = 0, overlap = 0;
#pragma omp parallel num_threads(threads)
    {
        double old;
#pragma omp for reduction(+ : square)
        for (long i = 0; i < rows; i++) {
            z[i] = 0;
            residual[i] = direction[i] = x[i];
            square += x[i] * x[i];
        }
        for (int step = 0; step < STEPS; step++) {
            old = square;
#pragma omp barrier
#pragma omp single
            square = overlap = 0;
#pragma omp for reduction(+ : overlap)
            for (long i = 0; i < rows; i++) {
                double sum = 0;
                for (long e = start[i]; e < start[i + 1]; e++)
                    sum += entry[e] * direction[column[e]];
                product[i] = sum;
                overlap += sum * direction[i];
            }
            double length = old / overlap;
#pragma omp for reduction(+ : square)
            for (long i = 0; i < rows; i++) {
                z[i] += length * direction[i];
                residual[i] -= length * product[i];
                square += residual[i] * residual[i];
            }
            double keep = square / old;
#pragma omp for
            for (long i = 0; i < rows; i++)
                direction[i] = residual[i] + keep * direction[i];
        }
    }
    error = sqrt(square);
}

/* x becomes the solution, of length 1; the eigenvalue is that part of x of before. */
static void renew(void)
{
    double square = 0, overlap = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : square, overlap)
    for (long i = 0; i < rows; i++) {
        square += z[i] * z[i];
        overlap += x[i] * z[i];
    }
    double length = 1 / sqrt(square);
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < rows; i++)
        x[i] = length * z[i];
    eigenvalue = 1 / overlap;
}

static void work(void)
{
    for (long iteration = 0; iteration < iterations; iteration++) {
        solve();
        renew();
    }
}

/* Edges between random rows, twice in the matrix; the diagonal is a little more than the sum of a row's others. */
static void make_matrix(long edges)
{
    struct random r = {53};
    long *from = must_alloc(sizeof *from * (size_t)edges), *to = must_alloc(sizeof *to * (size_t)edges);
    double *weight = must_alloc(sizeof *weight * (size_t)edges);
    double *diagonal = must_alloc(sizeof *diagonal * (size_t)rows);
    start = calloc((size_t)rows + 2, sizeof *start);
    if (!start)
        die("cannot allocate %ld rows", rows);
    for (long e = 0; e < edges; e++) {
        from[e] = (long)(random_bits(&r) % (uint64_t)rows);
        to[e] = (from[e] + 1 + (long)(random_bits(&r) % (uint64_t)(rows - 1))) % rows;
        weight[e] = -random_unit(&r);
        start[from[e] + 2]++;
        start[to[e] + 2]++;
    }
    for (long i = 0; i < rows; i++) {
        start[i + 2] += start[i + 1] + 1;
        diagonal[i] = 0.1 + (double)(i % 10) * 0.01;
    }
    size_t entries = (size_t)start[rows + 1];
    column = must_alloc(sizeof *column * entries);
    entry = must_alloc(sizeof *entry * entries);
    /* start[i + 1] walks from the start to the end of row i while it is filled in. */
    for (long e = 0; e < edges; e++) {
        long end[2] = {from[e], to[e]};
        for (int side = 0; side < 2; side++) {
            column[start[end[side] + 1]] = end[!side];
            entry[start[end[side] + 1]++] = weight[e];
            diagonal[end[side]] -= weight[e];
        }
    }
    for (long i = 0; i < rows; i++) {
        column[start[i + 1]] = i;
        entry[start[i + 1]++] = diagonal[i];
    }
    free(diagonal);
    free(from);
    free(to);
    free(weight);
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    rows = specs[0].value;
    iterations = specs[2].value;
    make_matrix(rows * specs[1].value);
    double **vectors[] = {&x, &z, &residual, &direction, &product};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = must_alloc(sizeof(double) * (size_t)rows);
    struct random r = {59};
    for (long i = 0; i < rows; i++)
        x[i] = random_unit(&r) + 0.5;
    run_alone(work);
    printf("result: omp-cg %ld rows, %ld iterations: eigenvalue %.9f\n", rows, iterations, eigenvalue);
    if (self_check) {
        check(error < 1e-3, "the last system is solved");
        check(eigenvalue > 0.1 && eigenvalue < 0.19, "the eigenvalue is between the least and the greatest surplus");
    }
    return 0;
}
