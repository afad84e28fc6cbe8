#include "fmmlib.h"

static double binomial[2 * TERMS][TERMS];

void prepare_series(void)
{
    for (int n = 0; n < 2 * TERMS; n++)
        for (int k = 0; k < TERMS && k <= n; k++)
            binomial[n][k] = k == 0 || k == n ? 1 : binomial[n - 1][k - 1] + binomial[n - 1][k];
}

void add_to_outer(number *outer, double mass, number place)
{
    number power = mass;
    for (int k = 0; k < TERMS; k++) {
        outer[k] += power;
        power = times(power, place);
    }
}

void add_to_inner(number *inner, double mass, number place)
{
    number inverted = inverse(place), power = -mass * inverted;
    for (int l = 0; l < TERMS; l++) {
        inner[l] += power;
        power = times(power, inverted);
    }
}

void shift_outer(number *outer, const number *from, number shift)
{
    number power[TERMS] = {1};
    for (int k = 1; k < TERMS; k++)
        power[k] = times(power[k - 1], shift);
    for (int l = 0; l < TERMS; l++)
        for (int k = 0; k <= l; k++)
            outer[l] += binomial[l][k] * times(from[k], power[l - k]);
}

void outer_to_inner(number *inner, const number *outer, number distance)
{
    number scaled[TERMS], inverted = inverse(distance), power = inverted;
    for (int k = 0; k < TERMS; k++) {
        scaled[k] = times(outer[k], power);
        power = times(power, inverted);
    }
    power = 1;
    for (int l = 0; l < TERMS; l++) {
        number sum = 0;
        for (int k = 0; k < TERMS; k++)
            sum += binomial[k + l][l] * scaled[k];
        inner[l] += times(sum, power);
        power = -times(power, inverted);
    }
}

void shift_inner(number *inner, const number *from, number shift)
{
    number power[TERMS] = {1};
    for (int k = 1; k < TERMS; k++)
        power[k] = times(power[k - 1], shift);
    for (int l = 0; l < TERMS; l++)
        for (int k = l; k < TERMS; k++)
            inner[l] += binomial[k][l] * times(from[k], power[k - l]);
}

number outer_at(const number *outer, number z)
{
    number inverted = inverse(z), sum = 0;
    for (int k = TERMS; k-- > 0;)
        sum = times(sum + outer[k], inverted);
    return sum;
}

number inner_at(const number *inner, number z)
{
    number sum = 0;
    for (int k = TERMS; k-- > 0;)
        sum = times(sum, z) + inner[k];
    return sum;
}
