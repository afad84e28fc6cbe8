/* Reader-writer locks: every call and its error codes. */
#include "../harness.h"
#include "deadline.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long while_main_writes(int self)
{
    (void)self;
    EXPECT(EBUSY, pthread_rwlock_tryrdlock(&lock));
    EXPECT(EBUSY, pthread_rwlock_trywrlock(&lock));
    struct timespec at = deadline(CLOCK_REALTIME, 20);
    EXPECT(ETIMEDOUT, pthread_rwlock_timedrdlock(&lock, &at));
    REQUIRE(passed(CLOCK_REALTIME, at));
    at = deadline(CLOCK_REALTIME, 20);
    EXPECT(ETIMEDOUT, pthread_rwlock_timedwrlock(&lock, &at));
    at = deadline(CLOCK_MONOTONIC, 20);
    EXPECT(ETIMEDOUT, pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &at));
    at = deadline(CLOCK_MONOTONIC, 20);
    EXPECT(ETIMEDOUT, pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &at));
    REQUIRE(passed(CLOCK_MONOTONIC, at));
    EXPECT(EINVAL, pthread_rwlock_timedrdlock(&lock, &invalid_time));
    EXPECT(EINVAL, pthread_rwlock_timedwrlock(&lock, &invalid_time));
    EXPECT(EINVAL, pthread_rwlock_clockwrlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &at));
    return 0;
}

static long while_main_reads(int self)
{
    (void)self;
    EXPECT(EBUSY, pthread_rwlock_trywrlock(&lock));
    EXPECT(0, pthread_rwlock_tryrdlock(&lock));
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    EXPECT(0, pthread_rwlock_unlock(&lock));
    EXPECT(0, pthread_rwlock_unlock(&lock));
    struct timespec at = deadline(CLOCK_REALTIME, -1000);
    EXPECT(0, pthread_rwlock_timedrdlock(&lock, &at)); /* no wait, so the time does not matter */
    EXPECT(0, pthread_rwlock_unlock(&lock));
    EXPECT(ETIMEDOUT, pthread_rwlock_timedwrlock(&lock, &at));
    return 0;
}

static long while_free(int self)
{
    (void)self;
    EXPECT(0, pthread_rwlock_trywrlock(&lock));
    EXPECT(0, pthread_rwlock_unlock(&lock));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, pthread_rwlock_wrlock(&lock));
    EXPECT(EDEADLK, pthread_rwlock_rdlock(&lock));
    EXPECT(EDEADLK, pthread_rwlock_wrlock(&lock));
    EXPECT(EBUSY, pthread_rwlock_tryrdlock(&lock));
    EXPECT(EBUSY, pthread_rwlock_trywrlock(&lock));
    run_threads(1, while_main_writes);
    EXPECT(0, pthread_rwlock_unlock(&lock));

    EXPECT(0, pthread_rwlock_rdlock(&lock));
    EXPECT(0, pthread_rwlock_rdlock(&lock));
    run_threads(3, while_main_reads);
    EXPECT(0, pthread_rwlock_unlock(&lock));
    run_threads(2, while_main_reads); /* still read-locked once */
    EXPECT(0, pthread_rwlock_unlock(&lock));
    run_threads(1, while_free);
    EXPECT(0, pthread_rwlock_destroy(&lock));

    pthread_rwlockattr_t attr;
    EXPECT(0, pthread_rwlockattr_init(&attr));
    EXPECT(0, pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    pthread_rwlock_t *prefer_writer = malloc(sizeof *prefer_writer);
    EXPECT(0, pthread_rwlock_init(prefer_writer, &attr));
    EXPECT(0, pthread_rwlock_wrlock(prefer_writer));
    EXPECT(0, pthread_rwlock_unlock(prefer_writer));
    EXPECT(0, pthread_rwlock_destroy(prefer_writer));
    return pass();
}
