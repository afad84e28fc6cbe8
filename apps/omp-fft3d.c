/* Waves in a periodic cube: a three-dimensional Fourier transform, and back again for each time step.
 *
 * A parallel loop for each direction of each transform: along z and y each thread works on planes of its own, along
 * x its lines cross the planes of all others. A time step multiplies each wave by a number of its own, which is
 * another loop, and adds some numbers of the result.
 */
#include "common.h"

#include <complex.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "points along an edge of the cube (a power of 2)", 16, 128, 2, 1024, 0},
    {'i', "time steps", 2, 4, 1, 1000, 0},
};
static struct app app = {"omp-fft3d", "3-D fast Fourier transforms, OpenMP", specs, 2, NULL, NULL};

enum { MAX_SIDE = 1024, WIDE = 8 }; /* WIDE: lines side by side that are copied at once */

/* The C library has it only for compilers that claim to be gcc 4.7 or later; clang claims to be 4.2. */
#ifndef CMPLX
#define CMPLX(real, imaginary) __builtin_complex((double)(real), (double)(imaginary))
#endif

typedef double complex number;

static long n, steps;
static number *space, *spectrum; /* [x][y][z] */
static number roots[MAX_SIDE];   /* exp(2 pi i k / n) */
static uint64_t result = HASH_START;

/* (a + ib)(c + id) without the checks for infinities that C's own product does. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static void transform(number *line, bool inverse)
{
    for (long i = 0, reversed = 0; i < n; i++) {
        if (i < reversed) {
            number kept = line[i];
            line[i] = line[reversed];
            line[reversed] = kept;
        }
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
                number odd = times(line[start + half + k], inverse ? root : conj(root)), even = line[start + k];
                line[start + k] = even + odd;
                line[start + half + k] = even - odd;
            }
}

/* Transforms lines that are side by side and whose elements are `apart` from each other. */
static void transform_beside(number *first, long apart, long lines, bool inverse)
{
    number copy[WIDE][MAX_SIDE];
    for (long i = 0; i < n; i++)
        for (long l = 0; l < lines; l++)
            copy[l][i] = first[i * apart + l];
    for (long l = 0; l < lines; l++)
        transform(copy[l], inverse);
    for (long i = 0; i < n; i++)
        for (long l = 0; l < lines; l++)
            first[i * apart + l] = copy[l][i];
}

static void transform_all(number *cube, bool inverse)
{
    long wide = n < WIDE ? n : WIDE;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for
        for (long line = 0; line < n * n; line++)
            transform(cube + line * n, inverse);
#pragma omp for
        for (long x = 0; x < n; x++)
            for (long z = 0; z < n; z += wide)
                transform_beside(cube + x * n * n + z, n, wide, inverse);
#pragma omp for
        for (long y = 0; y < n; y++)
            for (long z = 0; z < n; z += wide)
                transform_beside(cube + y * n + z, n * n, wide, inverse);
    }
}

static double frequency(long k)
{
    return (double)(k <= n / 2 ? k : k - n);
}

/* The spectrum at a time goes to `space`. */
static void advance(long step)
{
#pragma omp parallel for num_threads(threads)
    for (long x = 0; x < n; x++)
        for (long y = 0; y < n; y++)
            for (long z = 0; z < n; z++) {
                double fx = frequency(x), fy = frequency(y), fz = frequency(z);
                double part = exp(-1e-4 * (double)step * (fx * fx + fy * fy + fz * fz)) / (double)(n * n * n);
                space[(x * n + y) * n + z] = spectrum[(x * n + y) * n + z] * part;
            }
}

static void work(void)
{
#pragma omp parallel for num_threads(threads)
    for (long x = 0; x < n; x++) {
        struct random r = {(uint64_t)x * 2 + 1};
        for (long i = 0; i < n * n; i++)
            spectrum[x * n * n + i] = CMPLX(random_unit(&r) - 0.5, random_unit(&r) - 0.5);
    }
    transform_all(spectrum, false);
    for (long step = 1; step <= steps; step++) {
        advance(step);
        transform_all(space, true);
        for (long i = 0; i < 512; i++)
            result = hash_bytes(result, &space[i * 7919 % (n * n * n)], sizeof(number));
    }
}

/* Parseval's equation for the last step. */
static void verify(void)
{
    double in_space = 0, in_spectrum = 0;
    for (long i = 0; i < n * n * n; i++)
        in_space += creal(times(space[i], conj(space[i])));
    advance(steps);
    for (long i = 0; i < n * n * n; i++)
        in_spectrum += creal(times(space[i], conj(space[i])));
    double ratio = in_space / (double)(n * n * n) / in_spectrum;
    check(fabs(ratio - 1) < 1e-9, "energy is the same in space and in the spectrum");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    steps = specs[1].value;
    if (n & (n - 1))
        die("-n wants a power of 2, not %ld", n);
    size_t bytes = sizeof(number) * (size_t)(n * n * n);
    space = must_alloc(bytes);
    spectrum = must_alloc(bytes);
    for (long k = 0; k < n; k++)
        roots[k] = cexp(CMPLX(0, 2 * acos(-1.0) * (double)k / (double)n));
    run_alone(work);
    result = hash_bytes(result, space, bytes);
    printf("result: omp-fft3d %ld, %ld steps: %016lx\n", n, steps, (unsigned long)result);
    if (self_check)
        verify();
    return 0;
}
