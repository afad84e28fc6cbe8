/* Flexible water: what molecules are, the forces inside and between them, and their motion.
 *
 * A molecule is an oxygen and two hydrogens on springs. Forces are kept as whole numbers, so that the sums do not depend
 * on their order.
 *
 * Units: Angstrom, kcal/mol and atomic mass units; the unit of time is then 48.888 femtoseconds.
 */
#ifndef APPS_WATERLIB_H
#define APPS_WATERLIB_H

#include "common.h"

enum { O, H1, H2, ATOMS };

/* Distance of the molecules of the initial lattice, for 0.997 g/cm3. */
#define SPACING 3.1035
/* Greatest distance of two oxygens at which molecules feel each other. */
#define CUTOFF 9.0
#define TIME_STEP 0.01
/* Forces and energies are counted in units of 1 / FORCE_UNIT. */
#define FORCE_UNIT 4294967296.0

typedef struct {
    double x[3];
} vector;

struct water {
    vector position[ATOMS], velocity[ATOMS];
    int64_t force[ATOMS][3];
};

/* Side of the periodic box, and the distance that counts instead of CUTOFF in a small one. */
extern double box, cutoff;

/* Puts a molecule that rests at a point of the initial lattice, turned at random. */
void place_water(struct water *m, const long *point, struct random *r);

/* The number in units of 1 / FORCE_UNIT. */
int64_t fixed(double value);

/* Adds the forces inside a molecule to `force`; gives the energy. */
double inside(const struct water *m, int64_t force[][3]);

/* Adds the forces between two molecules, if their oxygens are near enough; gives the energy. What `n` feels is what `m`
 * feels negated, bit by bit, whichever of the two comes first. */
double between(const struct water *m, const struct water *n, int64_t fm[][3], int64_t fn[][3]);

/* Changes the velocities as the forces do in a time. */
void push(struct water *m, double time);

/* Moves the atoms as their velocities say, and clears the forces. */
void drift(struct water *m, double time);

double kinetic_energy(const struct water *m);

/* How far the forces on a molecule are from the slope of its energy, which `energy_of(i)` works out afresh: the greatest
 * relative difference. */
double slope_error(struct water *m, double (*energy_of)(long i), long i);

#endif
