/* A hash table without locks, in which threads count words, look them up and take some out.
 *
 * A slot belongs to the first key that compare-and-swap puts there, for ever; a key whose slot is taken goes to the
 * next one. Its count is added to atomically, and is 0 when it has been taken out. Keys are random, some far more
 * frequent than others. What is counted does not depend on who comes first, only the slots do.
 */
#include "common.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "keys that are put in", 2000, 4000000, 1, 1000000000, 0},
    {'b', "the table has 2^N slots", 10, 18, 4, 30, 0},
};
static struct app app = {"hashtable", "hash table without locks, C11 atomics", specs, 2, NULL, NULL};

struct slot {
    _Atomic uint64_t key; /* 0: nobody's */
    _Atomic long count;
};

static long puts_in_all;
static uint64_t slots;
static struct slot *table;
static _Atomic uint64_t found_sum, taken_sum;

/* Of half as many values as there are slots; the square makes small ones frequent. */
static uint64_t key_of(long i)
{
    struct random r = {(uint64_t)i * 2 + 1};
    random_bits(&r);
    double x = random_unit(&r);
    return (uint64_t)(x * x * (double)(slots / 2)) + 1;
}

static uint64_t mix(uint64_t key)
{
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

/* The slot of a key; NULL if it has none and `make` is not set. */
static struct slot *find(uint64_t key, bool make)
{
    for (uint64_t at = mix(key) & (slots - 1);; at = (at + 1) & (slots - 1)) {
        struct slot *s = &table[at];
        uint64_t there = atomic_load_explicit(&s->key, memory_order_acquire);
        if (there == 0 && !make)
            return NULL;
        if (there == 0 && atomic_compare_exchange_strong(&s->key, &there, key))
            return s;
        if (there == key)
            return s;
    }
}

static void work(int self)
{
    long first, last, first_key, last_key;
    uint64_t found = 0, taken = 0;
    my_block(puts_in_all, self, &first, &last);
    my_block((long)slots / 2, self, &first_key, &last_key);
    for (long i = first; i < last; i++)
        atomic_fetch_add_explicit(&find(key_of(i), true)->count, 1, memory_order_relaxed);
    team_barrier();
    /* Each thread looks up what another one has put in. */
    for (long i = first; i < last; i++) {
        struct slot *s = find(key_of(puts_in_all - 1 - i), false);
        if (!s)
            die("a key that was put in is not there");
        found += (uint64_t)atomic_load_explicit(&s->count, memory_order_relaxed);
    }
    team_barrier();
    for (long i = first; i < last; i++) {
        if (i % 3)
            continue;
        struct slot *s = find(key_of(i), false);
        taken += (uint64_t)atomic_exchange(&s->count, 0);
    }
    atomic_fetch_add(&found_sum, found);
    atomic_fetch_add(&taken_sum, taken);
    team_barrier();
    /* Half of the keys are put in once more. */
    for (long key = first_key + 1; key <= last_key; key++)
        if (key % 2)
            atomic_fetch_add_explicit(&find((uint64_t)key, true)->count, key, memory_order_relaxed);
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    puts_in_all = specs[0].value;
    slots = 1ul << specs[1].value;
    table = calloc(slots, sizeof *table);
    if (!table)
        die("cannot allocate a table of %lu slots", (unsigned long)slots);
    run_team(MAIN_WAITS, work);
    uint64_t sum = 0, keys = 0;
    for (uint64_t i = 0; i < slots; i++) {
        uint64_t key = atomic_load(&table[i].key);
        keys += key != 0;
        sum += mix(key) * (uint64_t)atomic_load(&table[i].count);
    }
    printf("result: hashtable %ld keys, %lu different, found %lu, taken %lu: %016lx\n", puts_in_all,
           (unsigned long)keys, (unsigned long)atomic_load(&found_sum), (unsigned long)atomic_load(&taken_sum),
           (unsigned long)sum);
    if (self_check) {
        bool *twice = calloc(slots, sizeof *twice), once = twice != NULL;
        for (uint64_t i = 0; once && i < slots; i++) {
            uint64_t key = atomic_load(&table[i].key);
            once = key == 0 || (key < slots && !twice[key]);
            if (once && key)
                twice[key] = true;
        }
        free(twice);
        check(once, "no key has two slots");
    }
    return 0;
}
