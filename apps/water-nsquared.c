/* Molecular dynamics of flexible water in a periodic box; every pair of molecules is looked at.
 *
 * Thread by thread, each molecule of a thread's block meets the half of all others that follow it in cyclic order.
 * Forces are gathered privately and then added to the common ones under a mutex for each molecule. Main sets up the
 * molecules and computes as thread 0.
 */
#include "waterlib.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'m', "molecules along a side of the box", 6, 21, 2, 100, 0},
    {'i', "time steps", 3, 2, 1, 1000000, 0},
};
static struct app app = {"water-nsquared", "molecular dynamics of water, all pairs", specs, 2, NULL, NULL};

struct molecule {
    struct water water;
    pthread_mutex_t mutex; /* held while forces are added */
};

static long molecules, steps;
static struct molecule *molecule;
static struct {
    pthread_mutex_t mutex;
    int64_t potential; /* in units of 1 / FORCE_UNIT, of the latest evaluation */
} energy = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* How many molecules after i in cyclic order are its partners, so that every pair is met once. */
static long partners(long i)
{
    if (molecules % 2)
        return molecules / 2;
    return molecules / 2 - (i < molecules / 2 ? 0 : 1);
}

static void evaluate(long first, long last, int64_t (*private)[ATOMS][3])
{
    int64_t potential = 0;
    for (long i = 0; i < molecules; i++)
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                private[i][a][k] = 0;
    for (long i = first; i < last; i++) {
        potential += fixed(inside(&molecule[i].water, private[i]));
        for (long p = 1; p <= partners(i); p++) {
            long j = (i + p) % molecules;
            potential += fixed(between(&molecule[i].water, &molecule[j].water, private[i], private[j]));
        }
    }
    /* Only the block itself and what follows it for half the ring can have been met. */
    long met = last > first ? last - first + molecules / 2 : 0;
    for (long p = 0; p < (met < molecules ? met : molecules); p++) {
        long j = (first + p) % molecules;
        pthread_mutex_lock(&molecule[j].mutex);
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                molecule[j].water.force[a][k] += private[j][a][k];
        pthread_mutex_unlock(&molecule[j].mutex);
    }
    pthread_mutex_lock(&energy.mutex);
    energy.potential += potential;
    pthread_mutex_unlock(&energy.mutex);
}

static void work(int self)
{
    long first, last;
    my_block(molecules, self, &first, &last);
    int64_t(*private)[ATOMS][3] = must_alloc(sizeof *private * (size_t)molecules);
    evaluate(first, last, private);
    team_barrier();
    for (long step = 0; step < steps; step++) {
        for (long i = first; i < last; i++) {
            push(&molecule[i].water, TIME_STEP / 2);
            drift(&molecule[i].water, TIME_STEP);
        }
        if (self == 0)
            energy.potential = 0;
        team_barrier();
        evaluate(first, last, private);
        team_barrier();
        for (long i = first; i < last; i++)
            push(&molecule[i].water, TIME_STEP / 2);
    }
    free(private);
}

/* A molecule at every point of a lattice. */
static void initialise(long side)
{
    struct random r = {9261};
    for (long i = 0; i < molecules; i++) {
        long point[3] = {i / (side * side), i / side % side, i % side};
        place_water(&molecule[i].water, point, &r);
        int error = pthread_mutex_init(&molecule[i].mutex, NULL);
        if (error)
            die("pthread_mutex_init gave %d", error);
    }
}

/* The energy of one molecule with itself and all others, in floating point and without any forces kept. */
static double energy_of(long i)
{
    int64_t unused[2][ATOMS][3] = {{{0}}};
    double sum = inside(&molecule[i].water, unused[0]);
    for (long j = 0; j < molecules; j++)
        if (j != i)
            sum += between(&molecule[i].water, &molecule[j].water, unused[0], unused[1]);
    return sum;
}

/* Forces are the slope of the energy, and they cancel out. */
static void verify(void)
{
    int64_t sum[3] = {0, 0, 0};
    for (long i = 0; i < molecules; i++)
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                sum[k] += molecule[i].water.force[a][k];
    check(sum[0] == 0 && sum[1] == 0 && sum[2] == 0, "the sum of all forces is zero");
    double worst = 0;
    for (long i = 0; i < molecules; i += 1 + molecules / 20)
        worst = fmax(worst, slope_error(&molecule[i].water, energy_of, i));
    check(worst < 1e-4, "forces are the slope of the energy");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    long side = specs[0].value;
    steps = specs[1].value;
    molecules = side * side * side;
    box = SPACING * (double)side;
    cutoff = box / 2 < CUTOFF ? box / 2 : CUTOFF;
    molecule = must_alloc(sizeof *molecule * (size_t)molecules);
    initialise(side);
    run_team(MAIN_WORKS, work);
    double kinetic = 0;
    uint64_t hash = HASH_START;
    for (long i = 0; i < molecules; i++) {
        kinetic += kinetic_energy(&molecule[i].water);
        hash = hash_bytes(hash, molecule[i].water.position, sizeof molecule[i].water.position);
    }
    double potential = (double)energy.potential / FORCE_UNIT;
    printf("result: water-nsquared %ld molecules, %ld steps: potential %.6g, kinetic %.6g: %016lx\n", molecules, steps,
           potential, kinetic, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
