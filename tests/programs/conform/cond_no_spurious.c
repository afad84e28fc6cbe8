/* Programs that wait without a loop around pthread_cond_wait: a barrier made of a mutex and a condition variable,
 * and one signal at a time to several waiters. Right only if a wait never returns without a signal. */
#include "../harness.h"
#include <sched.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER, go = PTHREAD_COND_INITIALIZER;
static int arrived, waiting, woken;
static long phase[MAX_THREADS];
static sem_t wakes;

static void loopless_barrier(void)
{
    pthread_mutex_lock(&mutex);
    if (++arrived == threads) {
        arrived = 0;
        pthread_cond_broadcast(&all_here);
    } else
        pthread_cond_wait(&all_here, &mutex);
    pthread_mutex_unlock(&mutex);
}

static long phases(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        phase[self] = round;
        loopless_barrier();
        for (int i = 0; i < threads; i++)
            violations += phase[i] != round;
        loopless_barrier();
    }
    return violations;
}

/* The last thread signals, the others wait once each. */
static long one_by_one(int self)
{
    long violations = 0;
    if (self < threads - 1) {
        pthread_mutex_lock(&mutex);
        waiting++;
        pthread_cond_wait(&go, &mutex);
        woken++;
        pthread_mutex_unlock(&mutex);
        sem_post(&wakes);
        return 0;
    }
    bool all = false;
    while (!all) {
        pthread_mutex_lock(&mutex);
        all = waiting == threads - 1;
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
    for (int i = 1; i < threads; i++) {
        pthread_mutex_lock(&mutex);
        violations += woken != i - 1;
        pthread_cond_signal(&go);
        pthread_mutex_unlock(&mutex);
        sem_wait(&wakes);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 5, 200);
    EXPECT(0, sem_init(&wakes, 0, 0));
    long violations = run_threads(threads, phases);
    violations += run_threads(threads, one_by_one);
    EXPECT(threads - 1, woken);
    return verdict(violations, "a wait returned without a signal");
}
