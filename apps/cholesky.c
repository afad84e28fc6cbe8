/* Cholesky factorisation A = L L' of a sparse matrix, by groups of columns that have their non-zeros in the same
 * rows.
 *
 * The matrix is that of the five-point star on a square grid, whose points are numbered by nested dissection. Main
 * works out the structure of L and cuts it into groups of columns. A group is ready when all groups that it is
 * updated by are done: each group counts them under a lock of its own. Ready groups wait in a common pool under a
 * mutex. Who takes one subtracts what the others contribute, in their order, so that no rounding depends on who does
 * it when.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "side of the grid", 40, 448, 2, 4000, 0},
    {'w', "most columns of a group", 16, 32, 1, 256, 0},
};
static struct app app = {"cholesky", "sparse Cholesky factorisation", specs, 2, NULL, NULL};

enum { NEW_ROWS = 4 };

struct group {
    pthread_mutex_t mutex; /* guards `missing` */
    long missing;          /* groups that update this one and are not done */
    long first, width;     /* its columns */
    long *row, rows;       /* of the non-zeros, beginning with its columns */
    double *value;         /* of row[i] and column first + j at i * width + j */
    long *from, froms;     /* groups that update it, in their order */
};

static long side, columns, groups, widest;
static long *number;    /* of the grid's points */
static long *point;     /* by number */
static long *group_of;  /* by column */
static struct group *group;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long *ready, used, done;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static double diagonal(long p)
{
    return 4.01 + 0.001 * (double)(p % 7);
}

/* Numbers the points of a rectangle: of both halves first, then those between them. */
static void dissect(long top, long left, long bottom, long right, long *next)
{
    if (top >= bottom || left >= right)
        return;
    bool tall = bottom - top > right - left;
    long middle = tall ? (top + bottom) / 2 : (left + right) / 2;
    if (tall) {
        dissect(top, left, middle, right, next);
        dissect(middle + 1, left, bottom, right, next);
    } else {
        dissect(top, left, bottom, middle, next);
        dissect(top, middle + 1, bottom, right, next);
    }
    for (long i = tall ? left : top; i < (tall ? right : bottom); i++) {
        long p = tall ? middle * side + i : i * side + middle;
        point[*next] = p;
        number[p] = (*next)++;
    }
}

/* The numbers of the neighbours of a column's point that come after it. */
static int later_neighbours(long column, long *to)
{
    long p = point[column], i = p / side, j = p % side;
    long all[4] = {i > 0 ? p - side : -1, i < side - 1 ? p + side : -1, j > 0 ? p - 1 : -1, j < side - 1 ? p + 1 : -1};
    int count = 0;
    for (int k = 0; k < 4; k++)
        if (all[k] >= 0 && number[all[k]] > column)
            to[count++] = number[all[k]];
    return count;
}

static int by_value(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;
    return (left > right) - (left < right);
}

static void add_row(long *rows, long *count, long *mark, long column, long row)
{
    if (mark[row] != column) {
        mark[row] = column;
        rows[(*count)++] = row;
    }
}

/* The rows of a column below its diagonal: those of the matrix, and those of the columns whose first row it is. */
static void find_rows(long **rows, long *counts, long *child, long *sibling)
{
    long *mark = must_alloc(sizeof *mark * (size_t)columns), *found = must_alloc(sizeof *found * (size_t)columns);
    for (long j = 0; j < columns; j++)
        mark[j] = child[j] = sibling[j] = -1;
    for (long j = 0; j < columns; j++) {
        long count = 0, near[4];
        int nears = later_neighbours(j, near);
        for (int k = 0; k < nears; k++)
            add_row(found, &count, mark, j, near[k]);
        for (long c = child[j]; c >= 0; c = sibling[c])
            for (long k = 1; k < counts[c]; k++)
                add_row(found, &count, mark, j, rows[c][k]);
        qsort(found, (size_t)count, sizeof *found, by_value);
        rows[j] = must_alloc(sizeof(long) * (size_t)(count + 1));
        memcpy(rows[j], found, sizeof(long) * (size_t)count);
        counts[j] = count;
        if (count > 0) {
            sibling[j] = child[found[0]];
            child[found[0]] = j;
        }
    }
    free(mark);
    free(found);
}

/* Makes a group of the columns first .. first + width - 1 and fills it with the matrix. */
static void make_group(long first, long width, const long *rest, long rests)
{
    struct group *g = &group[groups];
    *g = (struct group){.first = first, .width = width, .rows = width + rests};
    pthread_mutex_init(&g->mutex, NULL);
    g->row = must_alloc(sizeof *g->row * (size_t)g->rows);
    g->value = calloc((size_t)(g->rows * width), sizeof *g->value);
    if (!g->value)
        die("out of memory for %ld rows of %ld columns", g->rows, width);
    for (long j = 0; j < width; j++) {
        g->row[j] = first + j;
        group_of[first + j] = groups;
    }
    memcpy(g->row + width, rest, sizeof *rest * (size_t)rests);
    for (long j = 0; j < width; j++) {
        long near[4];
        int nears = later_neighbours(first + j, near);
        g->value[j * width + j] = diagonal(point[first + j]);
        for (int k = 0; k < nears; k++) {
            long *at = bsearch(&near[k], g->row, (size_t)g->rows, sizeof *g->row, by_value);
            g->value[(at - g->row) * width + j] = -1;
        }
    }
    groups++;
}

/* Columns belong together as long as the next one's rows are the last one's without itself, or a few more: some zeros
 * cost less than many groups. */
static void make_groups(void)
{
    size_t bytes = sizeof(long) * (size_t)columns;
    long **rows = must_alloc(sizeof *rows * (size_t)columns);
    long *counts = must_alloc(bytes), *child = must_alloc(bytes), *sibling = must_alloc(bytes);
    find_rows(rows, counts, child, sibling);
    group = must_alloc(sizeof *group * (size_t)columns);
    for (long first = 0, next; first < columns; first = next) {
        next = first + 1;
        while (next < columns && next - first < widest && counts[next - 1] > 0 && rows[next - 1][0] == next &&
               counts[next] <= counts[next - 1] - 1 + NEW_ROWS)
            next++;
        make_group(first, next - first, rows[next - 1], counts[next - 1]);
    }
    for (long j = 0; j < columns; j++)
        free(rows[j]);
    free(rows);
    free(counts);
    free(child);
    free(sibling);
}

/* Calls `visit(a, b)` for each group b that a group a updates. */
static void each_update(void (*visit)(long a, long b))
{
    for (long a = 0; a < groups; a++)
        for (long i = group[a].width; i < group[a].rows; i++) {
            long b = group_of[group[a].row[i]];
            if (i == group[a].width || b != group_of[group[a].row[i - 1]])
                visit(a, b);
        }
}

static void count_update(long a, long b)
{
    (void)a;
    group[b].missing++;
}

static void note_update(long a, long b)
{
    struct group *g = &group[b];
    if (!g->from)
        g->from = must_alloc(sizeof *g->from * (size_t)g->missing);
    g->from[g->froms++] = a;
}

/* Subtracts from g what the columns of h contribute; place[row] is the index of a row in g. */
static void subtract(struct group *g, const struct group *h, const long *place)
{
    long start = h->width;
    while (h->row[start] < g->first)
        start++;
    for (long p = start; p < h->rows && h->row[p] < g->first + g->width; p++) {
        long column = h->row[p] - g->first;
        const double *left = h->value + p * h->width;
        for (long q = p; q < h->rows; q++) {
            const double *right = h->value + q * h->width;
            double sum = 0;
            for (long k = 0; k < h->width; k++)
                sum += left[k] * right[k];
            g->value[place[h->row[q]] * g->width + column] -= sum;
        }
    }
}

static void factor(struct group *g)
{
    long w = g->width;
    for (long j = 0; j < w; j++) {
        double *top = g->value + j * w;
        for (long k = 0; k < j; k++)
            top[j] -= top[k] * top[k];
        top[j] = sqrt(top[j]);
        for (long i = j + 1; i < g->rows; i++) {
            double *low = g->value + i * w;
            for (long k = 0; k < j; k++)
                low[j] -= low[k] * top[k];
            low[j] /= top[j];
        }
    }
}

static void put_ready(long g)
{
    pthread_mutex_lock(&pool.mutex);
    pool.ready[pool.used++] = g;
    pthread_cond_signal(&pool.changed);
    pthread_mutex_unlock(&pool.mutex);
}

/* The next group to work on, or -1 when all are done; `finished` says whether the thread has done one. */
static long take_ready(bool finished)
{
    pthread_mutex_lock(&pool.mutex);
    if (finished && ++pool.done == groups)
        pthread_cond_broadcast(&pool.changed);
    while (pool.used == 0 && pool.done < groups)
        pthread_cond_wait(&pool.changed, &pool.mutex);
    long g = pool.used > 0 ? pool.ready[--pool.used] : -1;
    pthread_mutex_unlock(&pool.mutex);
    return g;
}

/* Tells the groups that g updates that it is done. */
static void tell(const struct group *g)
{
    for (long i = g->width; i < g->rows; i++) {
        long b = group_of[g->row[i]];
        if (i > g->width && b == group_of[g->row[i - 1]])
            continue;
        pthread_mutex_lock(&group[b].mutex);
        bool ready = --group[b].missing == 0;
        pthread_mutex_unlock(&group[b].mutex);
        if (ready)
            put_ready(b);
    }
}

static void work(int self)
{
    (void)self;
    long *place = must_alloc(sizeof *place * (size_t)columns);
    for (long at = take_ready(false); at >= 0; at = take_ready(true)) {
        struct group *g = &group[at];
        for (long i = 0; i < g->rows; i++)
            place[g->row[i]] = i;
        for (long i = 0; i < g->froms; i++)
            subtract(g, &group[g->from[i]], place);
        factor(g);
        tell(g);
    }
    free(place);
}

/* Compares L (L' x) with A x for a vector x. */
static void verify(void)
{
    double *x = must_alloc(sizeof *x * (size_t)columns), *y = calloc((size_t)columns, sizeof *y);
    double *product = calloc((size_t)columns, sizeof *product), worst = 0;
    struct random r = {99};
    for (long j = 0; j < columns; j++)
        x[j] = random_unit(&r) + 0.5;
    for (int transposed = 1; transposed >= 0; transposed--)
        for (const struct group *g = group; g < group + groups; g++)
            for (long i = 0; i < g->rows; i++)
                for (long j = 0; j < g->width && j <= i; j++) {
                    double value = g->value[i * g->width + j];
                    if (transposed)
                        y[g->first + j] += value * x[g->row[i]];
                    else
                        product[g->row[i]] += value * y[g->first + j];
                }
    for (long p = 0; p < columns; p++) {
        long i = p / side, j = p % side;
        double sum = diagonal(p) * x[number[p]];
        sum -= i > 0 ? x[number[p - side]] : 0;
        sum -= i < side - 1 ? x[number[p + side]] : 0;
        sum -= j > 0 ? x[number[p - 1]] : 0;
        sum -= j < side - 1 ? x[number[p + 1]] : 0;
        worst = fmax(worst, fabs(product[number[p]] - sum));
    }
    check(worst < 1e-9, "L L' x equals A x");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    side = specs[0].value;
    widest = specs[1].value;
    columns = side * side;
    number = must_alloc(sizeof *number * (size_t)columns);
    point = must_alloc(sizeof *point * (size_t)columns);
    group_of = must_alloc(sizeof *group_of * (size_t)columns);
    long next = 0;
    dissect(0, 0, side, side, &next);
    make_groups();
    each_update(count_update);
    each_update(note_update);
    pool.ready = must_alloc(sizeof *pool.ready * (size_t)groups);
    for (long g = groups - 1; g >= 0; g--)
        if (group[g].missing == 0)
            put_ready(g);
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    for (long g = 0; g < groups; g++)
        hash = hash_bytes(hash, group[g].value, sizeof(double) * (size_t)(group[g].rows * group[g].width));
    printf("result: cholesky %ld columns in %ld groups: %016lx\n", columns, groups, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
