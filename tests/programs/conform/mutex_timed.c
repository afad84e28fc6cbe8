/* pthread_mutex_timedlock and pthread_mutex_clocklock: timeouts, errors, and success before the time is up. */
#include "../harness.h"
#include "deadline.h"

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static long value;

static long time_out(int self)
{
    (void)self;
    struct timespec at = deadline(CLOCK_REALTIME, 30);
    EXPECT(ETIMEDOUT, pthread_mutex_timedlock(&normal, &at));
    REQUIRE(passed(CLOCK_REALTIME, at));
    at = deadline(CLOCK_REALTIME, -1000);
    EXPECT(ETIMEDOUT, pthread_mutex_timedlock(&recursive, &at));
    at = deadline(CLOCK_MONOTONIC, 30);
    EXPECT(ETIMEDOUT, pthread_mutex_clocklock(&checking, CLOCK_MONOTONIC, &at));
    REQUIRE(passed(CLOCK_MONOTONIC, at));
    at = deadline(CLOCK_REALTIME, 30);
    EXPECT(ETIMEDOUT, pthread_mutex_clocklock(&normal, CLOCK_REALTIME, &at));
    EXPECT(EINVAL, pthread_mutex_timedlock(&normal, &invalid_time));
    EXPECT(EINVAL, pthread_mutex_clocklock(&normal, CLOCK_PROCESS_CPUTIME_ID, &at));
    return 0;
}

static long wait_for_main(int self)
{
    (void)self;
    struct timespec at = deadline(CLOCK_REALTIME, 60000);
    EXPECT(0, pthread_mutex_timedlock(&normal, &at));
    EXPECT(42, value);
    EXPECT(0, pthread_mutex_unlock(&normal));
    return 0;
}

static void *wait_thread(void *unused)
{
    (void)unused;
    wait_for_main(0);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    struct timespec at = deadline(CLOCK_REALTIME, -1000);
    EXPECT(0, pthread_mutex_timedlock(&normal, &at)); /* free: the time does not matter */
    EXPECT(0, pthread_mutex_timedlock(&checking, &at));
    EXPECT(0, pthread_mutex_timedlock(&recursive, &at));
    EXPECT(0, pthread_mutex_timedlock(&recursive, &at));
    EXPECT(EDEADLK, pthread_mutex_timedlock(&checking, &at));
    EXPECT(ETIMEDOUT, pthread_mutex_timedlock(&normal, &at)); /* a normal mutex waits for itself */
    run_threads(1, time_out);

    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, wait_thread, NULL));
    value = 42;
    EXPECT(0, pthread_mutex_unlock(&normal));
    EXPECT(0, pthread_join(id, NULL));
    return pass();
}
