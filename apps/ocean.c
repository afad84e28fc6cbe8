/* Currents of a square ocean that the wind drives, layer of water by finite differences.
 *
 * In each step the threads work out the new vorticity of each point from its neighbours, and then the stream
 * function by multigrid cycles, until nowhere the error is too great: the greatest one is found under a lock.
 * Threads own rectangles of every grid. All grids are plain two-dimensional arrays, so that threads side by side
 * share pages; with -l 1 each thread's rectangle is contiguous instead. Points that are relaxed at the same time
 * depend on each other nowhere: the result does not depend on the rectangles. Main fills the grids and waits.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "side of the grid in squares (a power of 2)", 32, 1024, 4, 16384, 0},
    {'i', "time steps", 2, 4, 1, 100000, 0},
    {'l', "1: the rectangle of each thread is contiguous", 0, 0, 0, 1, 0},
};
static struct app app = {"ocean", "ocean currents by multigrid", specs, 3, NULL, NULL};

enum { MAX_LEVELS = 16, SMOOTH = 2, SMOOTH_COARSEST = 20, MAX_CYCLES = 50, FREE_SPACE = 64 };

static const double tolerance = 1e-6, time_step = 0.02, friction = 0.05, rotation = 1, viscosity = 1e-5;

/* The points (0, 0) ... (n, n), of which those with 0 or n in them are the coast, where everything is 0. */
struct grid {
    double **line;     /* line[i * parts + p][j] is the point (i, j), for the columns j of part p */
    const int *part_of; /* by column */
    int parts;
};

/* One size of grids; n halves from level to level. */
struct level {
    long n;
    int *part_of, *one_part;
    struct grid stream, right, error; /* the equation is: Laplacian of stream = right */
};

static long side, steps, levels;
static int grid_rows, grid_columns; /* the rectangle of threads */
static bool contiguous;
static struct level level[MAX_LEVELS];
static struct grid vorticity, next_vorticity;
static long cycles;

static struct {
    pthread_mutex_t mutex;
    double value;
} greatest[2] = {{.mutex = PTHREAD_MUTEX_INITIALIZER}, {.mutex = PTHREAD_MUTEX_INITIALIZER}};

static inline double *at(const struct grid *g, long i, long j)
{
    return g->line[i * g->parts + g->part_of[j]] + j;
}

/* Points inside of the coast that a row or column of threads owns: part `self` of `count`. */
static void points(long n, int self, int count, long *first, long *last)
{
    *first = 1 + (n - 1) * self / count;
    *last = 1 + (n - 1) * (self + 1) / count;
}

struct part {
    long top, bottom, left, right; /* rows top .. bottom - 1, columns left .. right - 1 */
};

static struct part my_part(long n, int self)
{
    struct part p;
    points(n, self / grid_columns, grid_rows, &p.top, &p.bottom);
    points(n, self % grid_columns, grid_columns, &p.left, &p.right);
    return p;
}

/* The columns of a part are side by side also where it is contiguous; only its neighbours to the left and to the right
 * may be elsewhere. */
static double laplacian(const struct grid *g, long i, long j, double scale)
{
    return scale * (*at(g, i - 1, j) + *at(g, i + 1, j) + *at(g, i, j - 1) + *at(g, i, j + 1) - 4 * *at(g, i, j));
}

/* Gauss and Seidel's method on the points of one colour of a chessboard. */
static void relax(const struct level *l, const struct part *p, int colour)
{
    double square = 1.0 / ((double)l->n * (double)l->n);
    for (long i = p->top; i < p->bottom; i++) {
        long start = p->left + ((i + p->left + colour) & 1);
        if (start >= p->right)
            continue;
        double *row = at(&l->stream, i, p->left) - p->left;
        const double *above = at(&l->stream, i - 1, p->left) - p->left;
        const double *below = at(&l->stream, i + 1, p->left) - p->left;
        const double *right = at(&l->right, i, p->left) - p->left;
        double before = *at(&l->stream, i, p->left - 1), after = *at(&l->stream, i, p->right);
        for (long j = start; j < p->right; j += 2) {
            double west = j == p->left ? before : row[j - 1], east = j == p->right - 1 ? after : row[j + 1];
            row[j] = 0.25 * (above[j] + below[j] + west + east - square * right[j]);
        }
    }
}

static void smooth(const struct level *l, const struct part *p, int times)
{
    for (int i = 0; i < 2 * times; i++) {
        relax(l, p, i & 1);
        team_barrier();
    }
}

/* The error of the equation at each point of the part; its greatest value. */
static double find_error(const struct level *l, const struct part *p)
{
    double worst = 0, scale = (double)l->n * (double)l->n;
    for (long i = p->top; i < p->bottom; i++)
        for (long j = p->left; j < p->right; j++) {
            double error = *at(&l->right, i, j) - laplacian(&l->stream, i, j, scale);
            *at(&l->error, i, j) = error;
            worst = fmax(worst, fabs(error));
        }
    return worst;
}

/* The coarser level's equation is for the correction of the finer one's stream function. */
static void restrict_error(const struct level *fine, const struct level *coarse, const struct part *p)
{
    static const double weight[3] = {0.25, 0.5, 0.25};
    for (long i = p->top; i < p->bottom; i++)
        for (long j = p->left; j < p->right; j++) {
            double sum = 0;
            for (int di = 0; di < 3; di++)
                for (int dj = 0; dj < 3; dj++)
                    sum += weight[di] * weight[dj] * *at(&fine->error, 2 * i + di - 1, 2 * j + dj - 1);
            *at(&coarse->right, i, j) = sum;
            *at(&coarse->stream, i, j) = 0;
        }
}

static void correct(const struct level *fine, const struct level *coarse, const struct part *p)
{
    const struct grid *g = &coarse->stream;
    for (long i = p->top; i < p->bottom; i++)
        for (long j = p->left; j < p->right; j++) {
            long up = i / 2, down = (i + 1) / 2, west = j / 2, east = (j + 1) / 2;
            *at(&fine->stream, i, j) +=
                0.25 * ((*at(g, up, west) + *at(g, up, east)) + (*at(g, down, west) + *at(g, down, east)));
        }
}

/* One cycle from level k down to the coarsest one and back. */
static void cycle(long k, int self)
{
    const struct level *l = &level[k];
    struct part p = my_part(l->n, self);
    if (k == levels - 1) {
        smooth(l, &p, SMOOTH_COARSEST);
        return;
    }
    smooth(l, &p, SMOOTH);
    find_error(l, &p);
    team_barrier();
    struct part coarse = my_part(level[k + 1].n, self);
    restrict_error(l, &level[k + 1], &coarse);
    team_barrier();
    cycle(k + 1, self);
    correct(l, &level[k + 1], &p);
    team_barrier();
    smooth(l, &p, SMOOTH);
}

/* Cycles until the greatest error of all threads is small; false if that takes too many. */
static bool solve(int self)
{
    struct part p = my_part(side, self);
    for (long count = 0; count < MAX_CYCLES; count++) {
        double worst = find_error(&level[0], &p);
        pthread_mutex_lock(&greatest[count & 1].mutex);
        greatest[count & 1].value = fmax(greatest[count & 1].value, worst);
        pthread_mutex_unlock(&greatest[count & 1].mutex);
        team_barrier();
        worst = greatest[count & 1].value;
        if (self == 0)
            greatest[~count & 1].value = 0;
        team_barrier();
        if (worst < tolerance) {
            if (self == 0)
                greatest[count & 1].value = 0;
            team_barrier();
            return true;
        }
        if (self == 0)
            cycles++;
        cycle(0, self);
    }
    return false;
}

/* Currents carry vorticity along, the turning earth and the wind make some, friction takes some away. */
static void advance(const struct part *p)
{
    const struct grid *s = &level[0].stream, *v = &vorticity;
    double half = 0.5 * (double)side, scale = (double)side * (double)side;
    for (long i = p->top; i < p->bottom; i++)
        for (long j = p->left; j < p->right; j++) {
            double sx = half * (*at(s, i, j + 1) - *at(s, i, j - 1)), sy = half * (*at(s, i + 1, j) - *at(s, i - 1, j));
            double vx = half * (*at(v, i, j + 1) - *at(v, i, j - 1)), vy = half * (*at(v, i + 1, j) - *at(v, i - 1, j));
            double wind = -sin(acos(-1.0) * (double)i / (double)side);
            double change = sy * vx - sx * vy - rotation * sx + wind - friction * *at(v, i, j);
            *at(&next_vorticity, i, j) = *at(v, i, j) + time_step * (change + viscosity * laplacian(v, i, j, scale));
        }
}

static void take_over(const struct part *p)
{
    for (long i = p->top; i < p->bottom; i++)
        for (long j = p->left; j < p->right; j++)
            *at(&vorticity, i, j) = *at(&level[0].right, i, j) = *at(&next_vorticity, i, j);
}

static void work(int self)
{
    struct part p = my_part(side, self);
    for (long step = 0; step < steps; step++) {
        advance(&p);
        team_barrier();
        take_over(&p);
        team_barrier();
        if (!solve(self))
            die("the errors do not become small in %d cycles", MAX_CYCLES);
    }
}

/* Rows and columns of the coast belong to the part next to them. */
static struct part with_coast(long n, int self)
{
    struct part p = my_part(n, self);
    int row = self / grid_columns, column = self % grid_columns;
    p.top -= row == 0;
    p.left -= column == 0;
    p.bottom += row == grid_rows - 1;
    p.right += column == grid_columns - 1;
    return p;
}

static struct grid make_grid(const struct level *l)
{
    long points = l->n + 1, used = 0;
    struct grid g = {.part_of = contiguous ? l->part_of : l->one_part, .parts = contiguous ? grid_columns : 1};
    /* Contiguous rectangles are apart by more than a line of the cache. */
    size_t room = (size_t)(points * points) + (contiguous ? (size_t)threads * FREE_SPACE : 0);
    double *value = calloc(room, sizeof *value);
    g.line = must_alloc(sizeof *g.line * (size_t)(points * g.parts));
    if (!value)
        die("cannot allocate a grid of side %ld", l->n);
    for (long i = 0; !contiguous && i < points; i++)
        g.line[i] = value + i * points;
    for (int self = 0; contiguous && self < threads; self++, used += FREE_SPACE) {
        struct part p = with_coast(l->n, self);
        for (long i = p.top; i < p.bottom; i++, used += p.right - p.left)
            g.line[i * g.parts + self % grid_columns] = value + used - p.left;
    }
    return g;
}

static void make_level(struct level *l, long n)
{
    *l = (struct level){.n = n, .part_of = must_alloc(sizeof(int) * (size_t)(n + 1))};
    l->one_part = calloc((size_t)(n + 1), sizeof(int));
    if (!l->one_part)
        die("cannot allocate a grid of side %ld", n);
    for (int column = 0; column < grid_columns; column++) {
        struct part p = with_coast(n, column);
        for (long j = p.left; j < p.right; j++)
            l->part_of[j] = column;
    }
    l->stream = make_grid(l);
    l->right = make_grid(l);
    l->error = make_grid(l);
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    side = specs[0].value;
    steps = specs[1].value;
    contiguous = specs[2].value;
    if (side & (side - 1))
        die("-n wants a power of 2, not %ld", side);
    grid_columns = (int)sqrt((double)threads);
    while (threads % grid_columns)
        grid_columns--;
    grid_rows = threads / grid_columns;
    for (long n = side; n >= 2; n /= 2)
        make_level(&level[levels++], n);
    vorticity = make_grid(&level[0]);
    next_vorticity = make_grid(&level[0]);
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    double worst = 0, strongest = 0;
    for (long i = 1; i < side; i++)
        for (long j = 1; j < side; j++) {
            double stream = *at(&level[0].stream, i, j);
            hash = hash_bytes(hash, &stream, sizeof stream);
            strongest = fmax(strongest, fabs(stream));
            double error = *at(&vorticity, i, j) - laplacian(&level[0].stream, i, j, (double)side * (double)side);
            worst = fmax(worst, fabs(error));
        }
    printf("result: ocean %ld, %ld steps, %ld cycles: %016lx\n", side, steps, cycles, (unsigned long)hash);
    if (self_check) {
        check(worst < tolerance, "the Laplacian of the stream function is the vorticity");
        check(strongest > 1e-6 && isfinite(strongest), "the wind drives currents");
    }
    return 0;
}
