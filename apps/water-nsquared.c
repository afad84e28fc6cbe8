/* Molecular dynamics of flexible water in a periodic box; every pair of molecules is looked at.
 *
 * A molecule is an oxygen and two hydrogens on springs. Thread by thread, each molecule of a thread's block meets
 * the half of all others that follow it in cyclic order. Forces are gathered privately and then added to the common
 * ones under a mutex for each molecule. They are kept as whole numbers (units of 2^-32), so that the sums do not
 * depend on their order. Main sets up the molecules and computes as thread 0.
 *
 * Units: Angstrom, kcal/mol and atomic mass units; the unit of time is then 48.888 femtoseconds.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'m', "molecules along a side of the box", 6, 21, 2, 100, 0},
    {'i', "time steps", 3, 2, 1, 1000000, 0},
};
static struct app app = {"water-nsquared", "molecular dynamics of water, all pairs", specs, 2, NULL, NULL};

enum { O, H1, H2, ATOMS };

static const double spacing = 3.1035;    /* at 0.997 g/cm3 */
static const double time_step = 0.01;
static const double mass[ATOMS] = {15.9994, 1.008, 1.008};
static const double charge[ATOMS] = {-0.82, 0.41, 0.41};
static const double coulomb = 332.0637;  /* between unit charges at distance 1 */
static const double lj_depth = 0.1554, lj_size = 3.166; /* Lennard-Jones, between oxygens */
static const double bond_spring = 527.2, bond_length = 1.0, angle_spring = 80.0, hh_length = 1.633;
static const double force_unit = 4294967296.0;

typedef struct {
    double x[3];
} vector;

struct molecule {
    vector position[ATOMS], velocity[ATOMS];
    int64_t force[ATOMS][3]; /* in units of 1 / force_unit, under the mutex while forces are added */
    pthread_mutex_t mutex;
};

static long molecules, steps;
static double box, cutoff;
static struct molecule *water;
static struct {
    pthread_mutex_t mutex;
    int64_t potential; /* in units of 1 / force_unit, of the latest evaluation */
} energy = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static double nearest_image(double d)
{
    return d - box * rint(d / box);
}

static int64_t fixed(double value)
{
    return (int64_t)rint(value * force_unit);
}

/* Adds the force along d (from b to a) to a and takes it from b: whole numbers, so that a's is b's negated. */
static void apply(int64_t *a, int64_t *b, const double *d, double strength)
{
    for (int k = 0; k < 3; k++) {
        int64_t f = fixed(strength * d[k]);
        a[k] += f;
        b[k] -= f;
    }
}

/* A spring between two atoms of a molecule; gives its energy. */
static double spring(const struct molecule *m, int a, int b, double constant, double length, int64_t force[][3])
{
    double d[3], square = 0;
    for (int k = 0; k < 3; k++) {
        d[k] = m->position[a].x[k] - m->position[b].x[k];
        square += d[k] * d[k];
    }
    double r = sqrt(square);
    apply(force[a], force[b], d, -2 * constant * (r - length) / r);
    return constant * (r - length) * (r - length);
}

static double inside(const struct molecule *m, int64_t force[][3])
{
    return spring(m, O, H1, bond_spring, bond_length, force) + spring(m, O, H2, bond_spring, bond_length, force) +
           spring(m, H1, H2, angle_spring, hh_length, force);
}

/* Forces between two molecules, if their oxygens are near enough; gives the energy. */
static double between(const struct molecule *m, const struct molecule *n, int64_t fm[][3], int64_t fn[][3])
{
    double shift[3], oxygens = 0, potential = 0;
    for (int k = 0; k < 3; k++) {
        double d = m->position[O].x[k] - n->position[O].x[k];
        double image = nearest_image(d);
        shift[k] = image - d;
        oxygens += image * image;
    }
    if (oxygens >= cutoff * cutoff)
        return 0;
    for (int a = 0; a < ATOMS; a++)
        for (int b = 0; b < ATOMS; b++) {
            double d[3], square = 0;
            for (int k = 0; k < 3; k++) {
                d[k] = m->position[a].x[k] - n->position[b].x[k] + shift[k];
                square += d[k] * d[k];
            }
            double pair = coulomb * charge[a] * charge[b] / sqrt(square);
            potential += pair;
            apply(fm[a], fn[b], d, pair / square);
            if (a == O && b == O) {
                double six = lj_size * lj_size / square;
                six = six * six * six;
                potential += 4 * lj_depth * (six * six - six);
                apply(fm[a], fn[b], d, 24 * lj_depth * (2 * six * six - six) / square);
            }
        }
    return potential;
}

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
        potential += fixed(inside(&water[i], private[i]));
        for (long p = 1; p <= partners(i); p++) {
            long j = (i + p) % molecules;
            potential += fixed(between(&water[i], &water[j], private[i], private[j]));
        }
    }
    /* Only the block itself and what follows it for half the ring can have been met. */
    long met = last > first ? last - first + molecules / 2 : 0;
    for (long p = 0; p < (met < molecules ? met : molecules); p++) {
        long j = (first + p) % molecules;
        pthread_mutex_lock(&water[j].mutex);
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                water[j].force[a][k] += private[j][a][k];
        pthread_mutex_unlock(&water[j].mutex);
    }
    pthread_mutex_lock(&energy.mutex);
    energy.potential += potential;
    pthread_mutex_unlock(&energy.mutex);
}

static void push(struct molecule *m, double time)
{
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++)
            m->velocity[a].x[k] += time * (double)m->force[a][k] / force_unit / mass[a];
}

static void drift(struct molecule *m, double time)
{
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++) {
            m->position[a].x[k] += time * m->velocity[a].x[k];
            m->force[a][k] = 0;
        }
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
            push(&water[i], time_step / 2);
            drift(&water[i], time_step);
        }
        if (self == 0)
            energy.potential = 0;
        team_barrier();
        evaluate(first, last, private);
        team_barrier();
        for (long i = first; i < last; i++)
            push(&water[i], time_step / 2);
    }
    free(private);
}

static void random_direction(struct random *r, double *d)
{
    double square;
    do {
        square = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = 2 * random_unit(r) - 1;
            square += d[k] * d[k];
        }
    } while (square > 1 || square < 0.01);
    for (int k = 0; k < 3; k++)
        d[k] /= sqrt(square);
}

/* A molecule at every point of a lattice, turned at random. */
static void initialise(long side)
{
    struct random r = {9261};
    double half_hh = hh_length / 2, height = sqrt(bond_length * bond_length - half_hh * half_hh);
    for (long i = 0; i < molecules; i++) {
        struct molecule *m = &water[i];
        long place[3] = {i / (side * side), i / side % side, i % side};
        double along[3], other[3], across[3], dot = 0, length = 0;
        random_direction(&r, along);
        random_direction(&r, other);
        for (int k = 0; k < 3; k++)
            dot += along[k] * other[k];
        for (int k = 0; k < 3; k++) {
            across[k] = other[k] - dot * along[k];
            length += across[k] * across[k];
        }
        for (int k = 0; k < 3; k++) {
            double o = ((double)place[k] + 0.5) * spacing;
            double middle = o + height * along[k], arm = half_hh * across[k] / sqrt(length);
            m->position[O].x[k] = o;
            m->position[H1].x[k] = middle + arm;
            m->position[H2].x[k] = middle - arm;
            for (int a = 0; a < ATOMS; a++) {
                m->velocity[a].x[k] = 0;
                m->force[a][k] = 0;
            }
        }
        int error = pthread_mutex_init(&m->mutex, NULL);
        if (error)
            die("pthread_mutex_init gave %d", error);
    }
}

/* The energy of one molecule with itself and all others, in floating point and without any forces kept. */
static double energy_of(long i)
{
    int64_t unused[2][ATOMS][3] = {{{0}}};
    double sum = inside(&water[i], unused[0]);
    for (long j = 0; j < molecules; j++)
        if (j != i)
            sum += between(&water[i], &water[j], unused[0], unused[1]);
    return sum;
}

/* Forces are the slope of the energy, and they cancel out. */
static void verify(void)
{
    int64_t sum[3] = {0, 0, 0};
    for (long i = 0; i < molecules; i++)
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                sum[k] += water[i].force[a][k];
    check(sum[0] == 0 && sum[1] == 0 && sum[2] == 0, "the sum of all forces is zero");
    double worst = 0;
    const double h = 1e-5;
    for (long i = 0; i < molecules; i += 1 + molecules / 20)
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++) {
                double *x = &water[i].position[a].x[k], kept = *x;
                *x = kept + h;
                double above = energy_of(i);
                *x = kept - h;
                double below = energy_of(i);
                *x = kept;
                double force = (double)water[i].force[a][k] / force_unit, slope = (below - above) / (2 * h);
                worst = fmax(worst, fabs(force - slope) / (1 + fabs(force)));
            }
    check(worst < 1e-4, "forces are the slope of the energy");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    long side = specs[0].value;
    steps = specs[1].value;
    molecules = side * side * side;
    box = spacing * (double)side;
    cutoff = box / 2 < 9.0 ? box / 2 : 9.0;
    water = must_alloc(sizeof *water * (size_t)molecules);
    initialise(side);
    run_team(MAIN_WORKS, work);
    double kinetic = 0;
    uint64_t hash = HASH_START;
    for (long i = 0; i < molecules; i++) {
        for (int a = 0; a < ATOMS; a++)
            for (int k = 0; k < 3; k++)
                kinetic += 0.5 * mass[a] * water[i].velocity[a].x[k] * water[i].velocity[a].x[k];
        hash = hash_bytes(hash, water[i].position, sizeof water[i].position);
    }
    double potential = (double)energy.potential / force_unit;
    printf("result: water-nsquared %ld molecules, %ld steps: potential %.6g, kinetic %.6g: %016lx\n", molecules, steps,
           potential, kinetic, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
