/* Places of integer keys in their order, by buckets, several times with some keys changed.
 *
 * Each thread counts the keys of its part for each bucket and moves them there; then threads take buckets as they
 * come, and count the keys in each value's place. Counting is in arrays of all threads, summed up by all.
 */
#include "common.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "number of keys", 8192, 4194304, 16, 1000000000, 0},
    {'k', "keys have this many bits", 12, 19, 10, 24, 0},
    {'i', "times that all places are found", 2, 20, 1, 1000, 0},
};
static struct app app = {"omp-sort", "integer sort by buckets, OpenMP", specs, 3, NULL, NULL};

enum { BUCKET_BITS = 9, BUCKETS = 1 << BUCKET_BITS };

static long keys, key_bits, repetitions;
static uint32_t *key, *in_buckets;
static long *rank_of; /* by value: keys that are less or equal */
static long counts[MAX_THREADS][BUCKETS];
static uint64_t result = HASH_START;

static long bucket_of(uint32_t value)
{
    return value >> (key_bits - BUCKET_BITS);
}

/* Sums of four: keys in the middle are more frequent. */
static void make_keys(void)
{
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < keys; i++) {
        struct random r = {(uint64_t)i * 2 + 1};
        uint64_t sum = 0;
        random_bits(&r);
        for (int k = 0; k < 4; k++)
            sum += random_bits(&r) >> (34 - key_bits);
        key[i] = (uint32_t)sum;
    }
}

/* Where the keys of this thread go: behind those of buckets before, and of threads before in the same bucket. */
static void find_starts(int self, long *next)
{
    long sum = 0;
    for (long b = 0; b < BUCKETS; b++) {
        next[b] = sum;
        for (int t = 0; t < threads; t++) {
            next[b] += t < self ? counts[t][b] : 0;
            sum += counts[t][b];
        }
    }
}

/* The values of a bucket: keys of the bucket before `first` are less. */
static void rank_bucket(long bucket, long first, long last)
{
    long values = (1L << key_bits) / BUCKETS, low = bucket * values;
    for (long v = low; v < low + values; v++)
        rank_of[v] = 0;
    for (long i = first; i < last; i++)
        rank_of[in_buckets[i]]++;
    long sum = first;
    for (long v = low; v < low + values; v++)
        sum = rank_of[v] += sum;
}

static void find_places(void)
{
#pragma omp parallel num_threads(threads)
    {
        int self = omp_get_thread_num();
        long next[BUCKETS];
        memset(counts[self], 0, sizeof counts[self]);
#pragma omp for schedule(static)
        for (long i = 0; i < keys; i++)
            counts[self][bucket_of(key[i])]++;
        find_starts(self, next);
#pragma omp for schedule(static)
        for (long i = 0; i < keys; i++)
            in_buckets[next[bucket_of(key[i])]++] = key[i];
#pragma omp for schedule(dynamic)
        for (long b = 0; b < BUCKETS; b++) {
            long before = 0, own = 0;
            for (int t = 0; t < threads; t++) {
                for (long c = 0; c < b; c++)
                    before += counts[t][c];
                own += counts[t][b];
            }
            rank_bucket(b, before, before + own);
        }
    }
}

static void work(void)
{
    make_keys();
    for (long i = 0; i < repetitions; i++) {
        key[i] = (uint32_t)i;
        key[keys - 1 - i] = (uint32_t)((1L << key_bits) - 1 - i);
        find_places();
        for (long k = 0; k < 16; k++)
            result = hash_bytes(result, &rank_of[key[k * (keys / 16)]], sizeof *rank_of);
    }
}

static void verify(void)
{
    bool right = rank_of[(1L << key_bits) - 1] == keys;
    long *seen = calloc((size_t)1 << key_bits, sizeof *seen), sum = 0;
    for (long i = 0; i < keys; i++)
        seen[key[i]]++;
    for (long v = 0; v < 1L << key_bits; v++)
        right = right && rank_of[v] == (sum += seen[v]);
    free(seen);
    check(right, "places are as many as there are smaller keys");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    keys = specs[0].value;
    key_bits = specs[1].value;
    repetitions = specs[2].value;
    if (repetitions > keys / 2)
        die("-i wants at most half of the number of keys, %ld", keys / 2);
    key = must_alloc(sizeof *key * (size_t)keys);
    in_buckets = must_alloc(sizeof *in_buckets * (size_t)keys);
    rank_of = must_alloc(sizeof *rank_of << key_bits);
    run_alone(work);
    result = hash_bytes(result, rank_of, sizeof *rank_of << key_bits);
    printf("result: omp-sort %ld keys, %ld times: %016lx\n", keys, repetitions, (unsigned long)result);
    if (self_check)
        verify();
    return 0;
}
