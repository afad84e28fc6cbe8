/* Solves A x = b by Gaussian elimination with column pivoting and back substitution.
 *
 * Rows are dealt to the threads like cards. In step k the owner of row k looks for the largest element of its row,
 * publishes its column as the pivot, and everybody reads that row to eliminate the variable from rows below: one
 * producer, all others consumers, one barrier per step. Main fills A and b, computes as thread 0, and does both
 * substitutions.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'n', "number of equations", 256, 2048, 1, 20000, 0},
};
static struct app app = {"gauss", "Gaussian elimination and back substitution", specs, 1, NULL, NULL};

static long n;
static double *matrix; /* below the diagonal: the factors of the steps already made */
static double *right;
static long *pivot; /* pivot[k]: the column that was exchanged with column k in step k */

static double *row(long i)
{
    return matrix + i * n;
}

static void choose_pivot(long k)
{
    const double *r = row(k);
    long best = k;
    for (long j = k + 1; j < n; j++)
        if (fabs(r[j]) > fabs(r[best]))
            best = j;
    pivot[k] = best;
}

static void exchange(double *r, long k)
{
    double kept = r[k];
    r[k] = r[pivot[k]];
    r[pivot[k]] = kept;
}

static void work(int self)
{
    for (long k = 0; k < n; k++) {
        if (k % threads == self) {
            choose_pivot(k);
            exchange(row(k), k);
        }
        team_barrier();
        const double *from = row(k);
        long first = k + 1 + (self - (k + 1) % threads + threads) % threads;
        for (long i = first; i < n; i += threads) {
            double *to = row(i);
            exchange(to, k);
            double factor = to[k] / from[k];
            to[k] = factor; /* kept for the right-hand side */
            for (long j = k + 1; j < n; j++)
                to[j] -= factor * from[j];
        }
        /* No barrier here: the next pivot row is changed only by its owner, who has just finished with it. */
    }
}

/* Does to the right-hand side what was done to the rows, then solves the triangle. */
static double *substitute(void)
{
    double *x = must_alloc(sizeof(double) * (size_t)n);
    for (long i = 0; i < n; i++) {
        double sum = right[i];
        for (long j = 0; j < i; j++)
            sum -= row(i)[j] * x[j];
        x[i] = sum;
    }
    for (long i = n - 1; i >= 0; i--) {
        double *r = row(i);
        /* Exchanges of later steps did not touch this row. */
        for (long k = i + 1; k < n; k++)
            exchange(r, k);
        double sum = x[i];
        for (long j = i + 1; j < n; j++)
            sum -= r[j] * x[j];
        x[i] = sum / r[i];
    }
    /* x is in the order of the exchanged columns: undo the exchanges, last first. */
    for (long k = n - 1; k >= 0; k--)
        exchange(x, k);
    return x;
}

static void initialise(void)
{
    struct random r = {2048};
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++)
            row(i)[j] = random_unit(&r) - 0.5;
        right[i] = random_unit(&r) - 0.5;
    }
}

static void verify(const double *x)
{
    double worst = 0;
    initialise();
    for (long i = 0; i < n; i++) {
        double sum = -right[i], size = fabs(sum);
        for (long j = 0; j < n; j++) {
            sum += row(i)[j] * x[j];
            size += fabs(row(i)[j] * x[j]);
        }
        worst = fmax(worst, fabs(sum) / size);
    }
    check(worst < 1e-9, "A x equals b");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    matrix = must_alloc(sizeof(double) * (size_t)(n * n));
    right = must_alloc(sizeof(double) * (size_t)n);
    pivot = must_alloc(sizeof(long) * (size_t)n);
    initialise();
    run_team(MAIN_WORKS, work);
    double *x = substitute();
    printf("result: gauss %ld: %016lx\n", n, (unsigned long)hash_bytes(HASH_START, x, sizeof(double) * (size_t)n));
    if (self_check)
        verify(x);
    return 0;
}
