/* Series for the field of masses in a plane, after Carrier, Greengard and Rokhlin.
 *
 * Places are complex numbers. The field of a mass m at the place u is m / (z - u) at z: the conjugate of what attracts. That
 * of many masses about a centre c is, far away, the sum of outer[k] / (z - c)^(k + 1), and the field of what is far from a
 * centre is, near it, the sum of inner[k] (z - c)^k. Boxes of the same size that do not touch are far from each other: then
 * each term is at most half of the one before.
 */
#ifndef APPS_FMMLIB_H
#define APPS_FMMLIB_H

#include "common.h"

#include <complex.h>

/* Terms of each series. */
enum { TERMS = 20 };

typedef double complex number;

/* Before anything else. */
void prepare_series(void);

/* (a + ib)(c + id) without the checks for infinities that C's own product does. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* 1 / z. */
static inline number inverse(number z)
{
    double square = creal(z) * creal(z) + cimag(z) * cimag(z);
    return CMPLX(creal(z) / square, -cimag(z) / square);
}

/* Adds a mass at `place` from the centre of the series. */
void add_to_outer(number *outer, double mass, number place);
void add_to_inner(number *inner, double mass, number place);

/* Adds an outer series about a centre that is `shift` from the new one. */
void shift_outer(number *outer, const number *from, number shift);

/* Adds an outer series as an inner one about a centre at `distance` from its own. */
void outer_to_inner(number *inner, const number *outer, number distance);

/* Adds an inner series about a centre from which the new one is at `shift`. */
void shift_inner(number *inner, const number *from, number shift);

/* The field at z from the centre. */
number outer_at(const number *outer, number z);
number inner_at(const number *inner, number z);

#endif
