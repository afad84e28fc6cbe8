/* Condition variables: timeouts on both clocks, errors, state of the mutex after each call. */
#include "../harness.h"
#include "deadline.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool ready;

static long mutex_is_held(int self)
{
    (void)self;
    EXPECT(EBUSY, pthread_mutex_trylock(&mutex));
    return 0;
}

static long mutex_is_free(int self)
{
    (void)self;
    EXPECT(0, pthread_mutex_trylock(&mutex));
    EXPECT(0, pthread_mutex_unlock(&mutex));
    return 0;
}

/* One thread waits with a generous limit; the other makes it ready. */
static long wait_and_signal(int self)
{
    EXPECT(0, pthread_mutex_lock(&mutex));
    if (self == 0) {
        struct timespec at = deadline(CLOCK_REALTIME, 60000);
        while (!ready)
            EXPECT(0, pthread_cond_timedwait(&cond, &mutex, &at));
    } else {
        ready = true;
        EXPECT(0, pthread_cond_signal(&cond));
    }
    EXPECT(0, pthread_mutex_unlock(&mutex));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, pthread_cond_signal(&cond)); /* nobody waits: no effect, not even later */
    EXPECT(0, pthread_cond_broadcast(&cond));

    EXPECT(0, pthread_mutex_lock(&mutex));
    struct timespec at = deadline(CLOCK_REALTIME, 30);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &at));
    REQUIRE(passed(CLOCK_REALTIME, at));
    run_threads(1, mutex_is_held);
    at = deadline(CLOCK_MONOTONIC, 30);
    EXPECT(ETIMEDOUT, pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &at));
    REQUIRE(passed(CLOCK_MONOTONIC, at));
    at = deadline(CLOCK_REALTIME, -1000);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &at));
    EXPECT(EINVAL, pthread_cond_timedwait(&cond, &mutex, &invalid_time));
    EXPECT(EINVAL, pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &at));
    EXPECT(0, pthread_mutex_unlock(&mutex));
    run_threads(1, mutex_is_free);

    at = deadline(CLOCK_REALTIME, 30);
    EXPECT(EPERM, pthread_cond_timedwait(&cond, &checking, &at)); /* not the owner */

    pthread_condattr_t attr;
    clockid_t clock = -1;
    EXPECT(0, pthread_condattr_init(&attr));
    EXPECT(0, pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    EXPECT(0, pthread_condattr_getclock(&attr, &clock));
    EXPECT(CLOCK_MONOTONIC, clock);
    EXPECT(EINVAL, pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID));
    pthread_cond_t *monotonic = malloc(sizeof *monotonic);
    EXPECT(0, pthread_cond_init(monotonic, &attr));
    EXPECT(0, pthread_mutex_lock(&mutex));
    at = deadline(CLOCK_MONOTONIC, 30);
    EXPECT(ETIMEDOUT, pthread_cond_timedwait(monotonic, &mutex, &at));
    REQUIRE(passed(CLOCK_MONOTONIC, at));
    EXPECT(0, pthread_mutex_unlock(&mutex));
    EXPECT(0, pthread_cond_destroy(monotonic));

    run_threads(2, wait_and_signal);
    EXPECT(0, pthread_cond_destroy(&cond));
    return pass();
}
