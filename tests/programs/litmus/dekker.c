/* Dekker's mutual exclusion of two threads with plain loads and stores (sequentially consistent atomics). */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int wants[2], turn;
static long counter, mirror[PAGE / sizeof(long)];

static void enter(int self)
{
    atomic_store(&wants[self], 1);
    while (atomic_load(&wants[!self])) {
        if (atomic_load(&turn) != self) {
            atomic_store(&wants[self], 0);
            while (atomic_load(&turn) != self)
                sched_yield();
            atomic_store(&wants[self], 1);
        } else
            sched_yield();
    }
}

static void leave(int self)
{
    atomic_store(&turn, !self);
    atomic_store(&wants[self], 0);
}

static long work(int self)
{
    long violations = 0;
    for (long i = 0; i < iterations; i++) {
        enter(self);
        violations += counter != mirror[100];
        counter++;
        mirror[100]++;
        leave(self);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 500);
    long violations = run_threads(2, work);
    EXPECT(2 * iterations, counter);
    return verdict(violations, "both threads were inside");
}
