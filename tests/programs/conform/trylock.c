/* pthread_mutex_trylock fails only if somebody holds the mutex: when all try at once, one succeeds, wherever the mutex
 * was used last; and trylock in a loop is a lock. */
#include "../harness.h"
#include <sched.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int won[MAX_THREADS];
static long sum;

static int winners(void)
{
    int count = 0;
    for (int i = 0; i < threads; i++)
        count += won[i];
    return count;
}

/* All try; a winner keeps the mutex until all have tried, or (in odd rounds) gives it back at once. */
static long try_together(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        bool keeps = round % 2 == 0;
        int result = pthread_mutex_trylock(&mutex);
        REQUIRE(result == 0 || result == EBUSY);
        won[self] = result == 0;
        if (result == 0 && !keeps)
            pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&barrier);
        violations += keeps ? winners() != 1 : winners() < 1;
        if (result == 0 && keeps)
            pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

/* One tries, the others have nothing to do with the mutex: each time another thread. */
static long try_alone(int self)
{
    for (long round = 0; round < iterations; round++) {
        if (round % threads == self) {
            EXPECT(0, pthread_mutex_trylock(&mutex));
            EXPECT(EBUSY, pthread_mutex_trylock(&mutex));
            EXPECT(0, pthread_mutex_unlock(&mutex));
        }
        pthread_barrier_wait(&barrier);
    }
    return 0;
}

static long try_until_it_works(int self)
{
    (void)self;
    for (long i = 0; i < iterations; i++) {
        while (pthread_mutex_trylock(&mutex) != 0)
            sched_yield();
        sum++;
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 100);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    EXPECT(0, run_threads(threads, try_together));
    EXPECT(0, run_threads(threads, try_alone));
    EXPECT(0, run_threads(threads, try_until_it_works));
    EXPECT(threads * iterations, sum);
    return pass();
}
