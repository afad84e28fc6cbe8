/* One-dimensional fast Fourier transforms in six steps.
 *
 * The n = m x m numbers are a square matrix, whose rows the threads own in equal blocks. A transform is: transpose,
 * transform each row, multiply by roots of unity, transpose, transform each row, transpose. In a transposition each
 * thread reads a square from every other thread's rows and writes its own rows only. Threads make the numbers of
 * their rows themselves; main waits. The numbers are transformed there and back again -i times, and then there once
 * more.
 */
#include "common.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'m', "n is 2^N numbers (N is even)", 12, 20, 2, 30, 0},
    {'i', "times there and back before the last transform", 1, 3, 0, 1000, 0},
};
static struct app app = {"fft", "six-step fast Fourier transform", specs, 2, NULL, NULL};

typedef double complex number;

enum { PATCH = 8 }; /* numbers along the side of what is transposed at once */

static long n, side, repetitions;
static number *data, *other;
static number *roots; /* exp(2 pi i k / n) */

/* (a + ib)(c + id) without the checks for infinities that C's own product does. */
static inline number times(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static number root(long k, bool inverse)
{
    return inverse ? roots[k] : conj(roots[k]);
}

static number initial(long i)
{
    struct random r = {(uint64_t)i * 2 + 1};
    random_bits(&r);
    return CMPLX(random_unit(&r) - 0.5, random_unit(&r) - 0.5);
}

/* Rows first .. last - 1 of `to` become those columns of `from`. A thread begins with its own rows, so that all
 * threads read different rows at a time. */
static void transpose(number *to, const number *from, long first, long last)
{
    long patch = side < PATCH ? side : PATCH, start = first / patch * patch;
    for (long k = 0; k < side; k += patch) {
        long column = (start + k) % side;
        for (long row = first; row < last; row += patch)
            for (long r = row; r < row + patch && r < last; r++)
                for (long c = column; c < column + patch; c++)
                    to[r * side + c] = from[c * side + r];
    }
}

/* Transforms a row in place. */
static void transform(number *row, bool inverse)
{
    for (long i = 0, reversed = 0; i < side; i++) {
        if (i < reversed) {
            number kept = row[i];
            row[i] = row[reversed];
            row[reversed] = kept;
        }
        long bit = side >> 1;
        while (bit && (reversed & bit)) {
            reversed ^= bit;
            bit >>= 1;
        }
        reversed |= bit;
    }
    for (long half = 1; half < side; half *= 2)
        for (long start = 0; start < side; start += 2 * half)
            for (long k = 0; k < half; k++) {
                number odd = times(row[start + half + k], root(k * (n / (2 * half)), inverse));
                number even = row[start + k];
                row[start + k] = even + odd;
                row[start + half + k] = even - odd;
            }
}

/* Transforms `data`, of which this thread owns the rows first .. last - 1. */
static void six_steps(long first, long last, bool inverse)
{
    transpose(other, data, first, last);
    for (long r = first; r < last; r++) {
        transform(other + r * side, inverse);
        for (long c = 0; c < side; c++)
            other[r * side + c] = times(other[r * side + c], root(r * c, inverse));
    }
    team_barrier();
    transpose(data, other, first, last);
    for (long r = first; r < last; r++)
        transform(data + r * side, inverse);
    team_barrier();
    transpose(other, data, first, last);
    team_barrier();
    for (long i = first * side; i < last * side; i++)
        data[i] = inverse ? other[i] / (double)n : other[i];
    team_barrier();
}

static void work(int self)
{
    long first, last;
    my_block(side, self, &first, &last);
    for (long i = first * side; i < last * side; i++)
        data[i] = initial(i);
    team_barrier();
    for (long i = 0; i < repetitions; i++) {
        six_steps(first, last, false);
        six_steps(first, last, true);
    }
    six_steps(first, last, false);
}

/* Some numbers against the definition of the transform, then Parseval's equation. */
static void verify(void)
{
    struct random r = {5};
    double worst = 0, in_time = 0, in_spectrum = 0;
    for (int sample = 0; sample < 4; sample++) {
        uint64_t k = random_bits(&r) % (uint64_t)n;
        number sum = 0;
        for (uint64_t i = 0; i < (uint64_t)n; i++)
            sum += times(initial((long)i), conj(roots[k * i % (uint64_t)n]));
        worst = fmax(worst, cabs(sum - data[k]));
    }
    check(worst < 1e-9 * sqrt((double)n), "samples of the spectrum equal their definition");
    for (long i = 0; i < n; i++) {
        number before = initial(i);
        in_time += creal(times(before, conj(before)));
        in_spectrum += creal(times(data[i], conj(data[i])));
    }
    check(fabs(in_time * (double)n - in_spectrum) < 1e-9 * in_spectrum, "energy is the same before and after");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    if (specs[0].value % 2)
        die("-m wants an even number, not %ld", specs[0].value);
    n = 1L << specs[0].value;
    side = 1L << specs[0].value / 2;
    repetitions = specs[1].value;
    size_t bytes = sizeof(number) * (size_t)n;
    data = must_alloc(bytes);
    other = must_alloc(bytes);
    roots = must_alloc(bytes);
    for (long k = 0; k < n; k++)
        roots[k] = cexp(CMPLX(0, 2 * acos(-1.0) * (double)k / (double)n));
    run_team(MAIN_WAITS, work);
    printf("result: fft %ld, %ld times there and back: %016lx\n", n, repetitions,
           (unsigned long)hash_bytes(HASH_START, data, bytes));
    if (self_check)
        verify();
    return 0;
}
