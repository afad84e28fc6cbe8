#include "waterlib.h"

#include <math.h>

static const double mass[ATOMS] = {15.9994, 1.008, 1.008};
static const double charge[ATOMS] = {-0.82, 0.41, 0.41};
static const double coulomb = 332.0637;  /* between unit charges at distance 1 */
static const double lj_depth = 0.1554, lj_size = 3.166; /* Lennard-Jones, between oxygens */
static const double bond_spring = 527.2, bond_length = 1.0, angle_spring = 80.0, hh_length = 1.633;

double box, cutoff;

static double nearest_image(double d)
{
    return d - box * rint(d / box);
}

int64_t fixed(double value)
{
    return (int64_t)rint(value * FORCE_UNIT);
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
static double spring(const struct water *m, int a, int b, double constant, double length, int64_t force[][3])
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

double inside(const struct water *m, int64_t force[][3])
{
    return spring(m, O, H1, bond_spring, bond_length, force) + spring(m, O, H2, bond_spring, bond_length, force) +
           spring(m, H1, H2, angle_spring, hh_length, force);
}

double between(const struct water *m, const struct water *n, int64_t fm[][3], int64_t fn[][3])
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

void push(struct water *m, double time)
{
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++)
            m->velocity[a].x[k] += time * (double)m->force[a][k] / FORCE_UNIT / mass[a];
}

void drift(struct water *m, double time)
{
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++) {
            m->position[a].x[k] += time * m->velocity[a].x[k];
            m->force[a][k] = 0;
        }
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

void place_water(struct water *m, const long *point, struct random *r)
{
    double half_hh = hh_length / 2, height = sqrt(bond_length * bond_length - half_hh * half_hh);
    double along[3], other[3], across[3], dot = 0, length = 0;
    random_direction(r, along);
    random_direction(r, other);
    for (int k = 0; k < 3; k++)
        dot += along[k] * other[k];
    for (int k = 0; k < 3; k++) {
        across[k] = other[k] - dot * along[k];
        length += across[k] * across[k];
    }
    for (int k = 0; k < 3; k++) {
        double o = ((double)point[k] + 0.5) * SPACING;
        double middle = o + height * along[k], arm = half_hh * across[k] / sqrt(length);
        m->position[O].x[k] = o;
        m->position[H1].x[k] = middle + arm;
        m->position[H2].x[k] = middle - arm;
        for (int a = 0; a < ATOMS; a++) {
            m->velocity[a].x[k] = 0;
            m->force[a][k] = 0;
        }
    }
}

double kinetic_energy(const struct water *m)
{
    double sum = 0;
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++)
            sum += 0.5 * mass[a] * m->velocity[a].x[k] * m->velocity[a].x[k];
    return sum;
}

double slope_error(struct water *m, double (*energy_of)(long i), long i)
{
    const double h = 1e-5;
    double worst = 0;
    for (int a = 0; a < ATOMS; a++)
        for (int k = 0; k < 3; k++) {
            double *x = &m->position[a].x[k], kept = *x;
            *x = kept + h;
            double above = energy_of(i);
            *x = kept - h;
            double below = energy_of(i);
            *x = kept;
            double force = (double)m->force[a][k] / FORCE_UNIT, slope = (below - above) / (2 * h);
            worst = fmax(worst, fabs(force - slope) / (1 + fabs(force)));
        }
    return worst;
}
