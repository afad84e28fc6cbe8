/* Molecular dynamics of flexible water in a periodic box that is divided into cells.
 *
 * No cell is smaller than the distance at which molecules feel each other, so that only molecules of neighbouring cells
 * meet. Threads own contiguous blocks of cells. Each allocates the molecules of its cells one by one and works out the
 * forces on them; molecules that drift into another cell change lists, mostly between cells of one thread. Pairs on both
 * sides of a border are worked out twice: nobody writes another thread's molecules. Main waits.
 */
#include "waterlib.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'m', "molecules along a side of the box", 8, 32, 2, 100, 0},
    {'i', "time steps", 3, 5, 1, 1000000, 0},
};
static struct app app = {"water-spatial", "molecular dynamics of water in cells", specs, 2, NULL, NULL};

struct molecule {
    struct water water;
    long number; /* of its point of the initial lattice */
    struct molecule *next;
};

static long side, steps; /* molecules along a side of the box */
static long cells;       /* along a side */
static struct molecule **cell; /* lists, [x][y][z] */
static pthread_mutex_t *lock;  /* of each plane of cells x = constant, while molecules are added to its lists */
static struct {
    pthread_mutex_t mutex;
    int64_t potential; /* in units of 1 / FORCE_UNIT, of the latest evaluation */
} energy = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The number of the cell that a molecule's oxygen is in. */
static long cell_of(const struct water *m)
{
    long number = 0;
    for (int k = 0; k < 3; k++) {
        double x = m->position[O].x[k] / box;
        long along = (long)((x - floor(x)) * (double)cells);
        number = number * cells + (along < cells ? along : cells - 1);
    }
    return number;
}

static void add(struct molecule *m, long to)
{
    m->next = cell[to];
    cell[to] = m;
}

/* Makes the molecules of the cells first .. last - 1. */
static void initialise(long first, long last)
{
    for (long i = 0; i < side * side * side; i++) {
        long point[3] = {i / (side * side), i / side % side, i % side};
        struct random r = {(uint64_t)i * 2 + 1};
        struct water water;
        random_bits(&r);
        place_water(&water, point, &r);
        long at = cell_of(&water);
        if (at < first || at >= last)
            continue;
        struct molecule *m = must_alloc(sizeof *m);
        m->water = water;
        m->number = i;
        add(m, at);
    }
}

/* Adds the forces of the molecules of a cell on `m`; gives the energy of the pairs, each of which counts once. */
static int64_t meet(struct molecule *m, const struct molecule *others)
{
    int64_t potential = 0, unused[ATOMS][3] = {{0}};
    for (const struct molecule *n = others; n; n = n->next) {
        if (n == m)
            continue;
        double pair = between(&m->water, &n->water, m->water.force, unused);
        if (m->number < n->number)
            potential += fixed(pair);
    }
    return potential;
}

/* The cell `step` (-1, 0 or 1) further along one axis. */
static long neighbour(long along, long step)
{
    return (along + step + cells) % cells;
}

static void evaluate(long first, long last)
{
    int64_t potential = 0;
    for (long c = first; c < last; c++)
        for (struct molecule *m = cell[c]; m; m = m->next) {
            potential += fixed(inside(&m->water, m->water.force));
            for (long step = 0; step < 27; step++) {
                long x = neighbour(c / (cells * cells), step / 9 - 1);
                long y = neighbour(c / cells % cells, step / 3 % 3 - 1);
                long z = neighbour(c % cells, step % 3 - 1);
                potential += meet(m, cell[(x * cells + y) * cells + z]);
            }
        }
    pthread_mutex_lock(&energy.mutex);
    energy.potential += potential;
    pthread_mutex_unlock(&energy.mutex);
}

/* Moves the molecules of the cells first .. last - 1. Gives those that have left their cells, in a list. */
static struct molecule *drift_all(long first, long last)
{
    struct molecule *leaving = NULL;
    for (long c = first; c < last; c++)
        for (struct molecule **link = &cell[c]; *link;) {
            struct molecule *m = *link;
            push(&m->water, TIME_STEP / 2);
            drift(&m->water, TIME_STEP);
            if (cell_of(&m->water) == c) {
                link = &m->next;
                continue;
            }
            *link = m->next;
            m->next = leaving;
            leaving = m;
        }
    return leaving;
}

/* Adds molecules to the lists of the cells that they are in, while other threads do so too. */
static void settle(struct molecule *list)
{
    while (list) {
        struct molecule *m = list;
        long to = cell_of(&m->water);
        pthread_mutex_t *plane = &lock[to / (cells * cells)];
        list = m->next;
        pthread_mutex_lock(plane);
        add(m, to);
        pthread_mutex_unlock(plane);
    }
}

static void work(int self)
{
    long first, last;
    my_block(cells * cells * cells, self, &first, &last);
    initialise(first, last);
    team_barrier();
    evaluate(first, last);
    team_barrier();
    for (long step = 0; step < steps; step++) {
        struct molecule *leaving = drift_all(first, last);
        if (self == 0)
            energy.potential = 0;
        team_barrier();
        settle(leaving);
        team_barrier();
        evaluate(first, last);
        team_barrier();
        for (long c = first; c < last; c++)
            for (struct molecule *m = cell[c]; m; m = m->next)
                push(&m->water, TIME_STEP / 2);
    }
}

/* All molecules, by number. */
static struct molecule **all_molecules(void)
{
    struct molecule **all = must_alloc(sizeof *all * (size_t)(side * side * side));
    for (long c = 0; c < cells * cells * cells; c++)
        for (struct molecule *m = cell[c]; m; m = m->next)
            all[m->number] = m;
    return all;
}

static struct molecule **checked; /* what energy_of() is about */

/* The energy of one molecule with itself and all others, whatever their cells. */
static double energy_of(long i)
{
    int64_t unused[2][ATOMS][3] = {{{0}}};
    double sum = inside(&checked[i]->water, unused[0]);
    for (long j = 0; j < side * side * side; j++)
        if (j != i)
            sum += between(&checked[i]->water, &checked[j]->water, unused[0], unused[1]);
    return sum;
}

/* Forces are those of all pairs, and the slope of the energy; together they cancel out. */
static void verify(struct molecule **all)
{
    long count = side * side * side;
    int64_t sum[3] = {0, 0, 0};
    double worst = 0;
    bool same = true;
    for (long i = 0; i < count; i++)
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                sum[k] += all[i]->water.force[a][k];
    check(sum[0] == 0 && sum[1] == 0 && sum[2] == 0, "the sum of all forces is zero");
    checked = all;
    for (long i = 0; i < count; i += 1 + count / 20) {
        int64_t force[ATOMS][3] = {{0}}, unused[ATOMS][3] = {{0}};
        inside(&all[i]->water, force);
        for (long j = 0; j < count; j++)
            if (j != i)
                between(&all[i]->water, &all[j]->water, force, unused);
        same &= memcmp(force, all[i]->water.force, sizeof force) == 0;
        worst = fmax(worst, slope_error(&all[i]->water, energy_of, i));
    }
    check(same, "forces are those of all pairs");
    check(worst < 1e-4, "forces are the slope of the energy");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    side = specs[0].value;
    steps = specs[1].value;
    box = SPACING * (double)side;
    /* At least three cells, so that the neighbours of a cell are different ones. */
    cells = box < 3 * CUTOFF ? 3 : (long)(box / CUTOFF);
    cutoff = fmin(CUTOFF, box / (double)cells);
    cell = must_alloc(sizeof *cell * (size_t)(cells * cells * cells));
    lock = must_alloc(sizeof *lock * (size_t)cells);
    for (long c = 0; c < cells * cells * cells; c++)
        cell[c] = NULL;
    for (long x = 0; x < cells; x++) {
        int error = pthread_mutex_init(&lock[x], NULL);
        if (error)
            die("pthread_mutex_init gave %d", error);
    }
    run_team(MAIN_WAITS, work);
    struct molecule **all = all_molecules();
    double kinetic = 0;
    uint64_t hash = HASH_START;
    for (long i = 0; i < side * side * side; i++) {
        kinetic += kinetic_energy(&all[i]->water);
        hash = hash_bytes(hash, all[i]->water.position, sizeof all[i]->water.position);
    }
    printf("result: water-spatial %ld molecules, %ld steps: potential %.6g, kinetic %.6g: %016lx\n", side * side * side,
           steps, (double)energy.potential / FORCE_UNIT, kinetic, (unsigned long)hash);
    if (self_check)
        verify(all);
    return 0;
}
