/* Blocked LU factorisation of a dense matrix without pivoting, A = L U in place.
 *
 * The matrix is cut into square blocks, and the blocks are dealt to a rectangle of threads as evenly as the number
 * of threads allows. Each block is contiguous; with -l 1 the matrix is a plain two-dimensional array instead, so
 * that several threads write parts of each of its rows, and of each page. Step k factors the diagonal block, then
 * its row and column of blocks, then updates the rest, with a barrier after each. Main fills the matrix, which is
 * dominated by its diagonal so that no pivoting is needed, and then waits for the threads.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "side of the matrix (a multiple of the block)", 256, 2048, 1, 30000, 0},
    {'b', "side of a block", 16, 32, 1, 512, 0},
    {'l', "1: a plain two-dimensional array instead of contiguous blocks", 0, 0, 0, 1, 0},
};
static struct app app = {"lu", "blocked LU factorisation", specs, 3, NULL, NULL};

static long n, bs, blocks;     /* side, side of a block, blocks along a side */
static long next_row;          /* elements from a row of a block to its next one */
static int grid_rows, grid_columns; /* the rectangle of threads */
static double *matrix;

static double *block(long i, long j)
{
    return next_row == n ? matrix + i * bs * n + j * bs : matrix + (i * blocks + j) * bs * bs;
}

static int owner(long i, long j)
{
    return (int)(i % grid_rows) * grid_columns + (int)(j % grid_columns);
}

/* D = L U in place. */
static void factor_diagonal(double *d)
{
    for (long k = 0; k < bs; k++)
        for (long i = k + 1; i < bs; i++) {
            double factor = d[i * next_row + k] /= d[k * next_row + k];
            for (long j = k + 1; j < bs; j++)
                d[i * next_row + j] -= factor * d[k * next_row + j];
        }
}

/* Solves X U = B for a block below the diagonal, in place. */
static void solve_column(double *b, const double *d)
{
    for (long i = 0; i < bs; i++)
        for (long k = 0; k < bs; k++) {
            double factor = b[i * next_row + k] /= d[k * next_row + k];
            for (long j = k + 1; j < bs; j++)
                b[i * next_row + j] -= factor * d[k * next_row + j];
        }
}

/* Solves L X = B for a block right of the diagonal, in place. */
static void solve_row(double *b, const double *d)
{
    for (long k = 0; k < bs; k++)
        for (long i = k + 1; i < bs; i++) {
            double factor = d[i * next_row + k];
            for (long j = 0; j < bs; j++)
                b[i * next_row + j] -= factor * b[k * next_row + j];
        }
}

/* C -= A B. */
static void update(double *restrict c, const double *restrict a, const double *restrict b)
{
    for (long i = 0; i < bs; i++)
        for (long k = 0; k < bs; k++) {
            double factor = a[i * next_row + k];
            for (long j = 0; j < bs; j++)
                c[i * next_row + j] -= factor * b[k * next_row + j];
        }
}

static void work(int self)
{
    for (long k = 0; k < blocks; k++) {
        if (owner(k, k) == self)
            factor_diagonal(block(k, k));
        team_barrier();
        for (long i = k + 1; i < blocks; i++) {
            if (owner(i, k) == self)
                solve_column(block(i, k), block(k, k));
            if (owner(k, i) == self)
                solve_row(block(k, i), block(k, k));
        }
        team_barrier();
        for (long i = k + 1; i < blocks; i++)
            for (long j = k + 1; j < blocks; j++)
                if (owner(i, j) == self)
                    update(block(i, j), block(i, k), block(k, j));
        /* The next diagonal block is written by its owner alone, whose update of it came before: the barrier
         * after the diagonal step orders everything else. */
    }
}

static void initialise(double *to)
{
    struct random r = {7};
    double *saved = matrix;
    matrix = to;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            block(i / bs, j / bs)[i % bs * next_row + j % bs] = random_unit(&r) + (i == j ? (double)n : 0.0);
    matrix = saved;
}

static double entry(const double *of, long i, long j)
{
    return of[block(i / bs, j / bs) - matrix + i % bs * next_row + j % bs];
}

/* Compares L (U x) with A x for a vector x: wrong entries anywhere show up with certainty close to one. */
static void verify(void)
{
    size_t vector = sizeof(double) * (size_t)n;
    double *original = must_alloc(sizeof(double) * (size_t)(n * n));
    double *x = must_alloc(vector), *ux = must_alloc(vector);
    initialise(original);
    struct random r = {99};
    for (long i = 0; i < n; i++)
        x[i] = random_unit(&r) + 0.5;
    for (long i = 0; i < n; i++) {
        ux[i] = 0;
        for (long j = i; j < n; j++)
            ux[i] += entry(matrix, i, j) * x[j];
    }
    double worst = 0;
    for (long i = 0; i < n; i++) {
        double lux = ux[i], ax = 0;
        for (long j = 0; j < i; j++)
            lux += entry(matrix, i, j) * ux[j];
        for (long j = 0; j < n; j++)
            ax += entry(original, i, j) * x[j];
        worst = fmax(worst, fabs(lux - ax) / fabs(ax));
    }
    check(worst < 1e-10, "L U x equals A x");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    bs = specs[1].value;
    if (n % bs)
        die("-n %ld is not a multiple of the block %ld", n, bs);
    blocks = n / bs;
    next_row = specs[2].value ? n : bs;
    grid_rows = (int)sqrt((double)threads);
    while (threads % grid_rows)
        grid_rows--;
    grid_columns = threads / grid_rows;
    size_t bytes = sizeof(double) * (size_t)(n * n);
    matrix = must_alloc(bytes);
    initialise(matrix);
    run_team(MAIN_WAITS, work);
    printf("result: lu %ld, block %ld: %016lx\n", n, bs, (unsigned long)hash_bytes(HASH_START, matrix, bytes));
    if (self_check)
        verify();
    return 0;
}
