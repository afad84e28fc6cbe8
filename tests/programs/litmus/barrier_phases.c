/* Barrier phases with falsely shared counters: nobody is ever a phase ahead or behind. */
#include "../harness.h"

static long count[MAX_THREADS];
static pthread_barrier_t barrier;
static long serial_threads[MAX_THREADS];

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        count[self]++;
        int result = pthread_barrier_wait(&barrier);
        serial_threads[self] += result == PTHREAD_BARRIER_SERIAL_THREAD;
        violations += result != 0 && result != PTHREAD_BARRIER_SERIAL_THREAD;
        for (int i = 0; i < threads; i++)
            violations += count[i] != round;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 500);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work), serial = 0;
    for (int i = 0; i < threads; i++)
        serial += serial_threads[i];
    EXPECT(iterations, serial);
    return verdict(violations, "a thread was in another phase");
}
