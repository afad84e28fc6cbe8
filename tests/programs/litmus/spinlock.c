/* A spin lock made of an inline atomic exchange protects two counters in different pages. */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct {
    long word;
    char pad[PAGE - sizeof(long)];
} pair[2];

static long work(int self)
{
    (void)self;
    long violations = 0;
    for (long i = 0; i < iterations; i++) {
        while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
            sched_yield();
        violations += pair[0].word != pair[1].word;
        pair[0].word++;
        pair[1].word++;
        atomic_flag_clear_explicit(&lock, memory_order_release);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    long violations = run_threads(threads, work);
    EXPECT(threads * iterations, pair[0].word);
    return verdict(violations, "two threads were inside the lock");
}
