/* A sequence lock: one writer, readers that retry; a reader that accepts has seen one version. */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>

enum { WORDS = 40 };
static atomic_ulong sequence;
static atomic_long record[WORDS];

static void write_all(void)
{
    for (long round = 1; round <= iterations; round++) {
        atomic_store(&sequence, (unsigned long)round * 2 - 1);
        for (int i = 0; i < WORDS; i++)
            atomic_store(&record[i], round);
        atomic_store(&sequence, (unsigned long)round * 2);
        sched_yield();
    }
}

static long read_until_last(void)
{
    long violations = 0, version = 0;
    while (version < iterations) {
        unsigned long before = atomic_load(&sequence);
        long copy[WORDS];
        for (int i = 0; i < WORDS; i++)
            copy[i] = atomic_load(&record[i]);
        if (before % 2 || atomic_load(&sequence) != before) {
            sched_yield();
            continue;
        }
        violations += copy[0] < version;
        for (int i = 1; i < WORDS; i++)
            violations += copy[i] != copy[0];
        version = copy[0];
    }
    return violations;
}

static long work(int self)
{
    if (self)
        return read_until_last();
    write_all();
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 200);
    return verdict(run_threads(threads, work), "a reader accepted a mixture");
}
