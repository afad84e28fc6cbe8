/* Message passing by an atomic flag (release and acquire), to and fro, without any library call. */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>

static long data[2][PAGE / sizeof(long)];
static atomic_long flag;

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        if (round % threads != self)
            continue;
        while (atomic_load_explicit(&flag, memory_order_acquire) != round)
            sched_yield();
        violations += data[0][0] != round || data[1][7] != round;
        data[0][0] = data[1][7] = round + 1;
        atomic_store_explicit(&flag, round + 1, memory_order_release);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 500);
    return verdict(run_threads(threads, work), "old data after the flag");
}
