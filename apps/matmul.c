/* Product of two square matrices, C = A B, by blocks of rows.
 *
 * Main fills A and B; every thread reads all of B and its rows of A, and is the first to touch its rows of C.
 * Main computes as thread 0. With copies, as in section 5.3 of the NT-ccNUMA paper, each group of threads first copies B, and each
 * thread its rows of A.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TILE = 64 }; /* rows of B used together: TILE rows of 1024 doubles stay in a second-level cache */

static struct option_spec specs[] = {
    {'n', "side of the matrices", 192, 1024, 1, 30000, 0},
    {'g', "threads of a group with a copy of its own (0: no copies)", 0, 0, 0, MAX_THREADS, 0},
};
static struct app app = {"matmul", "product of two square matrices", specs, 2, NULL, NULL};

static long n;
static double *a, *b, *c;
static double *copies[MAX_THREADS]; /* of B, by group */

/* A copy of some rows of A, for one thread. */
static const double *copy_rows(long first, long last)
{
    size_t bytes = sizeof(double) * (size_t)((last - first) * n);
    return memcpy(must_alloc(bytes), a + first * n, bytes);
}

/* A copy of B, which the threads of a group make together. */
static const double *copy_of_group(int self)
{
    long group = specs[1].value, member = self % group, members = threads - (self - member);
    if (members > group)
        members = group;
    double **copy = &copies[self / group];
    if (member == 0)
        *copy = must_alloc(sizeof(double) * (size_t)(n * n));
    team_barrier();
    long row = n * member / members, end = n * (member + 1) / members;
    memcpy(*copy + row * n, b + row * n, sizeof(double) * (size_t)((end - row) * n));
    team_barrier();
    return *copy;
}

static void work(int self)
{
    long first, last;
    my_block(n, self, &first, &last);
    const double *factors = a + first * n, *others = b;
    if (specs[1].value) {
        factors = copy_rows(first, last);
        others = copy_of_group(self);
    }
    memset(c + first * n, 0, sizeof(double) * (size_t)((last - first) * n));
    for (long tile = 0; tile < n; tile += TILE) {
        long end = tile + TILE < n ? tile + TILE : n;
        for (long i = first; i < last; i++) {
            double *to = c + i * n;
            for (long k = tile; k < end; k++) {
                double factor = factors[(i - first) * n + k];
                const double *from = others + k * n;
                for (long j = 0; j < n; j++)
                    to[j] += factor * from[j];
            }
        }
    }
}

/* Recomputes every element of some rows, the first and the last among them, as inner products. */
static void verify(void)
{
    bool same = true;
    long stride = n < 16 ? 1 : (n - 1) / 15;
    for (long i = 0; i < n; i += stride)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            same &= fabs(sum - c[i * n + j]) < 1e-9 * (double)n;
        }
    check(same, "rows equal to their inner products");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    size_t bytes = sizeof(double) * (size_t)(n * n);
    a = must_alloc(bytes);
    b = must_alloc(bytes);
    c = must_alloc(bytes);
    struct random r = {42};
    for (long i = 0; i < n * n; i++) {
        a[i] = random_unit(&r) - 0.5;
        b[i] = random_unit(&r) - 0.5;
    }
    run_team(MAIN_WORKS, work);
    printf("result: matmul %ld: %016lx\n", n, (unsigned long)hash_bytes(HASH_START, c, bytes));
    if (self_check)
        verify();
    return 0;
}
