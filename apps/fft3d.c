/* Diffusion in a periodic cube, solved with three-dimensional fast Fourier transforms.
 *
 * Threads own slabs of planes x = constant and transform along y and z; then x and z change places so that threads own
 * slabs z = constant and can transform along x. Every such transposition is an exchange of data between all threads;
 * lines along y stay in one piece, so that what two threads exchange is blocks of them and not single numbers.
 * The spectrum is damped for each time step and transformed back. The threads fill the cube themselves (parallel
 * first touch), or with -o 1 main fills it, as naive programs do; then main waits.
 */
#include "common.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "side of the cube (a power of 2)", 32, 128, 2, 1024, 0},
    {'i', "time steps", 3, 6, 1, 1000, 0},
    {'o', "1: main initialises everything", 0, 0, 0, 1, 0},
};
static struct app app = {"fft3d", "diffusion by 3-D fast Fourier transforms", specs, 3, NULL, NULL};

typedef double complex number;

static long n, steps;
static bool one_initialises;
static number *space;    /* [x][z][y] */
static number *spectrum; /* [z][x][y] */
static number *damped;   /* [z][x][y] */
static number *roots;    /* exp(2 pi i k / n) */
static uint64_t *line_hash; /* of the results of a step, by x */
static uint64_t result;

/* (a + ib)(c + id) without the checks for infinities that C's own product does. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Transform of the n elements line[0], line[stride], ...; `inverse` without the division by n. `scratch` has n. */
static void transform(number *line, long stride, bool inverse, number *scratch)
{
    for (long i = 0, reversed = 0; i < n; i++) {
        scratch[reversed] = line[i * stride];
        long bit = n >> 1;
        while (bit && (reversed & bit)) {
            reversed ^= bit;
            bit >>= 1;
        }
        reversed |= bit;
    }
    for (long half = 1; half < n; half *= 2)
        for (long start = 0; start < n; start += 2 * half)
            for (long k = 0; k < half; k++) {
                number root = roots[k * (n / (2 * half))];
                number odd = times(scratch[start + half + k], inverse ? root : conj(root));
                number even = scratch[start + k];
                scratch[start + k] = even + odd;
                scratch[start + half + k] = even - odd;
            }
    for (long i = 0; i < n; i++)
        line[i * stride] = scratch[i];
}

static number initial(long x, long y, long z)
{
    struct random r = {(uint64_t)((x * n + y) * n + z) * 2 + 1};
    random_bits(&r);
    return CMPLX(random_unit(&r) - 0.5, random_unit(&r) - 0.5);
}

/* Damping of the wave (kx, ky, kz) at time t. */
static double damping(long kx, long ky, long kz, long t)
{
    double fx = (double)(kx <= n / 2 ? kx : kx - n), fy = (double)(ky <= n / 2 ? ky : ky - n);
    double fz = (double)(kz <= n / 2 ? kz : kz - n);
    return exp(-1e-4 * (double)t * (fx * fx + fy * fy + fz * fz));
}

/* Transforms a plane along the axis whose elements are n apart. */
static void transform_columns(number *plane, bool inverse, number *scratch)
{
    for (long y = 0; y < n; y++)
        transform(plane + y, n, inverse, scratch);
}

/* Transforms along y and z the planes x = first .. last - 1 of `space`. */
static void transform_yz(long first, long last, bool inverse, number *scratch)
{
    for (long x = first; x < last; x++) {
        number *plane = space + x * n * n;
        for (long z = 0; z < n; z++)
            transform(plane + z * n, 1, inverse, scratch);
        transform_columns(plane, inverse, scratch);
    }
}

/* Copies the planes first .. last - 1 of the array `to` out of those of `from`: the outer two axes change places. */
static void transpose(number *to, const number *from, long first, long last)
{
    for (long outer = first; outer < last; outer++)
        for (long middle = 0; middle < n; middle++)
            memcpy(to + (outer * n + middle) * n, from + (middle * n + outer) * n, sizeof(number) * (size_t)n);
}

static void forward(long first, long last, number *scratch)
{
    transform_yz(first, last, false, scratch);
    team_barrier();
    transpose(spectrum, space, first, last);
    for (long z = first; z < last; z++)
        transform_columns(spectrum + z * n * n, false, scratch);
    team_barrier();
}

/* From `spectrum` at time t to `space`. */
static void backward(long t, long first, long last, number *scratch)
{
    for (long z = first; z < last; z++) {
        number *plane = damped + z * n * n;
        for (long x = 0; x < n; x++)
            for (long y = 0; y < n; y++)
                plane[x * n + y] = spectrum[(z * n + x) * n + y] * damping(x, y, z, t) / (double)(n * n * n);
        transform_columns(plane, true, scratch);
    }
    team_barrier();
    transpose(space, damped, first, last);
    transform_yz(first, last, true, scratch);
}

/* Fills the planes x = first .. last - 1 of `space`. */
static void initialise(long first, long last)
{
    for (long x = first; x < last; x++)
        for (long z = 0; z < n; z++)
            for (long y = 0; y < n; y++)
                space[(x * n + z) * n + y] = initial(x, y, z);
}

static void work(int self)
{
    long first, last;
    my_block(n, self, &first, &last);
    number *scratch = must_alloc(sizeof(number) * (size_t)n);
    if (!one_initialises)
        initialise(first, last);
    forward(first, last, scratch);
    for (long t = 1; t <= steps; t++) {
        backward(t, first, last, scratch);
        for (long x = first; x < last; x++)
            line_hash[x] = hash_bytes(HASH_START, space + x * n * n, sizeof(number) * (size_t)(n * n));
        team_barrier();
        if (self == 0)
            result = hash_bytes(result, line_hash, sizeof(uint64_t) * (size_t)n);
    }
    free(scratch);
}

/* Some elements of the spectrum against the definition of the transform, then Parseval's equation for the result. */
static void verify(void)
{
    double worst = 0, in_space = 0, in_spectrum = 0;
    struct random r = {5};
    for (int sample = 0; sample < 4; sample++) {
        long kx = (long)(random_bits(&r) % (uint64_t)n), ky = (long)(random_bits(&r) % (uint64_t)n);
        long kz = (long)(random_bits(&r) % (uint64_t)n);
        number sum = 0;
        for (long x = 0; x < n; x++)
            for (long y = 0; y < n; y++)
                for (long z = 0; z < n; z++)
                    sum += times(initial(x, y, z), conj(roots[(kx * x + ky * y + kz * z) % n]));
        worst = fmax(worst, cabs(sum - spectrum[(kz * n + kx) * n + ky]));
    }
    check(worst < 1e-9 * (double)(n * n), "samples of the spectrum equal their definition");
    for (long z = 0; z < n; z++)
        for (long x = 0; x < n; x++)
            for (long y = 0; y < n; y++) {
                number wave = spectrum[(z * n + x) * n + y] * damping(x, y, z, steps);
                in_spectrum += creal(times(wave, conj(wave)));
                number value = space[(x * n + z) * n + y];
                in_space += creal(times(value, conj(value)));
            }
    in_space *= (double)(n * n * n);
    check(fabs(in_space - in_spectrum) < 1e-9 * in_spectrum, "energy is the same in space and in the spectrum");
    number *scratch = must_alloc(sizeof(number) * (size_t)n);
    transform_yz(0, n, false, scratch);
    worst = 0;
    for (long y = 0; y < n; y++) {
        number sum = 0;
        for (long x = 0; x < n; x++)
            sum += space[(x * n + 1) * n + y];
        number wave = spectrum[n * n + y] * damping(0, y, 1, steps);
        worst = fmax(worst, cabs(sum - wave));
    }
    check(worst < 1e-9 * (double)(n * n), "transforming the result again gives the damped spectrum");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    steps = specs[1].value;
    one_initialises = specs[2].value;
    if (n & (n - 1))
        die("-n wants a power of 2, not %ld", n);
    size_t bytes = sizeof(number) * (size_t)(n * n * n);
    space = must_alloc(bytes);
    spectrum = must_alloc(bytes);
    damped = must_alloc(bytes);
    roots = must_alloc(sizeof(number) * (size_t)n);
    line_hash = must_alloc(sizeof(uint64_t) * (size_t)n);
    for (long k = 0; k < n; k++)
        roots[k] = cexp(CMPLX(0, 2 * acos(-1.0) * (double)k / (double)n));
    result = HASH_START;
    if (one_initialises)
        initialise(0, n);
    run_team(MAIN_WAITS, work);
    printf("result: fft3d %ld, %ld steps: %016lx\n", n, steps, (unsigned long)result);
    if (self_check)
        verify();
    return 0;
}
