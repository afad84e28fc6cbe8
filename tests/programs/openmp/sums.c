/* Reductions of one variable each: gcc makes an atomic instruction, or a loop that compares and exchanges, of each. No other
 * atomic instruction is here, so that the program is right under release consistency, too. */
#include "../harness.h"
#include <float.h>
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

enum { COUNT = 1000, REGIONS = 20 };

static long total;
static double values[COUNT];

#define PRAGMA(...) _Pragma(#__VA_ARGS__)

/* Defines a function that reduces the numbers from 1 to a count. */
#define REDUCE(name, type, operator, first, term)                                                                              \
    static type name(int count)                                                                                                \
    {                                                                                                                          \
        type result = first;                                                                                                   \
        PRAGMA(omp parallel for num_threads(threads) reduction(operator : result))                                             \
        for (int i = 1; i <= count; i++)                                                                                       \
        {                                                                                                                      \
            type n = (type)i;                                                                                                  \
            result = term;                                                                                                     \
        }                                                                                                                      \
        return result;                                                                                                         \
    }

REDUCE(sum_of_longs, long, +, 5, result + n)
REDUCE(sum_of_ints, int, +, 5, result + n)
REDUCE(sum_of_shorts, short, +, 5, (short)(result + n))
REDUCE(sum_of_chars, unsigned char, +, 5, (unsigned char)(result + n))
REDUCE(sum_of_doubles, double, +, 0.5, result + n)
REDUCE(sum_of_floats, float, +, 0.5F, result + n)
REDUCE(difference, long, -, 0, result - n)
REDUCE(product, double, *, 1, result * (n < 11 ? n : 1))
REDUCE(all_bits, unsigned, |, 0, result | 1U << (n % 32))
REDUCE(common_bits, unsigned, &, ~0U, result & ~(1U << (n % 7)))
REDUCE(odd_bits, unsigned, ^, 0, result ^ n * 2654435761U)
REDUCE(largest, double, max, -DBL_MAX, n * (1001 - n) > result ? n * (1001 - n) : result)
REDUCE(smallest, int, min, 1 << 30, abs(n - 500) - 17 < result ? abs(n - 500) - 17 : result)

/* A result that is no variable of the thread that begins the region. */
static void sum_of_all(void)
{
#pragma omp parallel for num_threads(threads) reduction(+ : total)
    for (int i = 0; i < COUNT; i++)
        total += i;
}

/* Reductions in one region, with the result of one in the terms of the next. */
static double iterate(void)
{
    double norm = 0, error = 0;
#pragma omp parallel num_threads(threads)
    for (int round = 0; round < REGIONS; round++) {
#pragma omp for reduction(+ : norm)
        for (int i = 0; i < COUNT; i++)
            norm += values[i];
#pragma omp for reduction(max : error)
        for (int i = 0; i < COUNT; i++)
            error = values[i] + norm > error ? values[i] + norm : error;
#pragma omp single
        norm = 0;
#pragma omp for
        for (int i = 0; i < COUNT; i++)
            values[i] = (double)((i * 7 + round) % 13);
    }
    return error;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    for (int i = 0; i < COUNT; i++)
        values[i] = (double)(i % 11);
    for (int region = 0; region < REGIONS; region++) {
        int count = COUNT - region;
        printf("%ld %d %d %d\n", sum_of_longs(count), sum_of_ints(count), sum_of_shorts(count), sum_of_chars(count));
        printf("%.1f %.1f %ld %.0f\n", sum_of_doubles(count), (double)sum_of_floats(count), difference(count), product(count));
        printf("%x %x %x\n", all_bits(count), common_bits(count), odd_bits(count));
        printf("%.0f %d\n", largest(count), smallest(count));
        sum_of_all();
    }
    CHECK(total == (long)REGIONS * COUNT * (COUNT - 1) / 2, "the sum of all is %ld", total);
    printf("%.1f\n", iterate());
    return pass();
}
