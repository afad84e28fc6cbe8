/* Two-way merging: threads write a page without a lock while others' locked writes to the same page come in. */
#include "../harness.h"

static struct slot {
    long locked;  /* under this slot's mutex */
    long private; /* written by its own thread only, never under a lock */
} *slots;         /* all in one page */
static pthread_mutex_t mutex[MAX_THREADS];

static long work(int self)
{
    long violations = 0, latest[MAX_THREADS] = {0};
    for (long round = 1; round <= iterations; round++) {
        violations += slots[self].private != round - 1;
        slots[self].private = round;
        int victim = (int)((self + round) % threads);
        pthread_mutex_lock(&mutex[victim]);
        violations += slots[victim].locked < latest[victim];
        latest[victim] = ++slots[victim].locked;
        pthread_mutex_unlock(&mutex[victim]);
        violations += slots[self].private != round;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 500);
    slots = aligned_alloc(PAGE, PAGE);
    memset(slots, 0, PAGE);
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_mutex_init(&mutex[i], NULL));
    long violations = run_threads(threads, work), total = 0;
    for (int i = 0; i < threads; i++) {
        EXPECT(iterations, slots[i].private);
        total += slots[i].locked;
    }
    EXPECT(threads * iterations, total);
    return verdict(violations, "a write to a shared page was lost");
}
