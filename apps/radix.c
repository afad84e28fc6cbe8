/* Radix sort of 32-bit keys, digit by digit from the lowest.
 *
 * In each round a thread counts the digits of its block of the keys, all threads together work out where each
 * thread's keys of each digit begin, and each thread moves its keys there: to places all over the other array, side
 * by side with those of other threads. Threads make the keys of their blocks themselves; main waits.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "number of keys", 16384, 16777216, 1, 1000000000, 0},
    {'b', "bits of a digit", 8, 8, 1, 16, 0},
};
static struct app app = {"radix", "radix sort", specs, 2, NULL, NULL};

enum { KEY_BITS = 32 };

static long keys, digit_bits, digits;
static uint32_t *array[2];
static long *counts;     /* counts[self * digits + digit] */
static long *digit_sums; /* of all threads */

static uint32_t initial(long i)
{
    struct random r = {(uint64_t)i * 2 + 1};
    random_bits(&r);
    return (uint32_t)random_bits(&r);
}

static uint32_t digit_of(uint32_t key, long shift)
{
    return key >> shift & ((uint32_t)digits - 1);
}

/* Adds up what all threads have counted, for this thread's part of the digits: counts becomes the number of keys
 * with the same digit of threads before. */
static void add_up(int self)
{
    long first, last;
    my_block(digits, self, &first, &last);
    for (long d = first; d < last; d++) {
        long sum = 0;
        for (int t = 0; t < threads; t++) {
            long own = counts[t * digits + d];
            counts[t * digits + d] = sum;
            sum += own;
        }
        digit_sums[d] = sum;
    }
}

static void move(const uint32_t *from, uint32_t *to, long first, long last, long shift, const long *before, long *next)
{
    long sum = 0;
    for (long d = 0; d < digits; d++) {
        next[d] = sum + before[d];
        sum += digit_sums[d];
    }
    for (long i = first; i < last; i++)
        to[next[digit_of(from[i], shift)]++] = from[i];
}

static void work(int self)
{
    long first, last, *own = counts + self * digits;
    long *next = must_alloc(sizeof *next * (size_t)digits);
    my_block(keys, self, &first, &last);
    for (long i = first; i < last; i++)
        array[0][i] = initial(i);
    int from = 0;
    for (long shift = 0; shift < KEY_BITS; shift += digit_bits, from = !from) {
        memset(own, 0, sizeof *own * (size_t)digits);
        for (long i = first; i < last; i++)
            own[digit_of(array[from][i], shift)]++;
        team_barrier();
        add_up(self);
        team_barrier();
        move(array[from], array[!from], first, last, shift, own, next);
        team_barrier();
    }
    free(next);
}

static void verify(const uint32_t *sorted)
{
    bool ordered = true;
    uint64_t sum = 0, squares = 0, initial_sum = 0, initial_squares = 0;
    for (long i = 0; i < keys; i++) {
        uint64_t before = initial(i), after = sorted[i];
        ordered = ordered && (i == 0 || sorted[i - 1] <= sorted[i]);
        sum += after;
        squares += after * after;
        initial_sum += before;
        initial_squares += before * before;
    }
    check(ordered, "the keys are in order");
    check(sum == initial_sum && squares == initial_squares, "they are the same keys");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    keys = specs[0].value;
    digit_bits = specs[1].value;
    digits = 1L << digit_bits;
    size_t bytes = sizeof(uint32_t) * (size_t)keys;
    for (int i = 0; i < 2; i++)
        array[i] = must_alloc(bytes);
    counts = must_alloc(sizeof *counts * (size_t)(digits * threads));
    digit_sums = must_alloc(sizeof *digit_sums * (size_t)digits);
    run_team(MAIN_WAITS, work);
    const uint32_t *sorted = array[(KEY_BITS + digit_bits - 1) / digit_bits % 2];
    printf("result: radix %ld keys: %016lx\n", keys, (unsigned long)hash_bytes(HASH_START, sorted, bytes));
    if (self_check)
        verify(sorted);
    return 0;
}
