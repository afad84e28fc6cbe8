/* Locks and semaphores that move between the nodes that use them: held by many threads at once, more than a few by one thread, read
 * again past writers that wait, made anew at one address, and given up while they are somewhere else. */
#include "../harness.h"
#include "deadline.h"
#include <semaphore.h>

enum { LOCKS = 12, MOST = 64 };

static pthread_rwlock_t locks[LOCKS];
static long written[LOCKS];
static pthread_rwlock_t busy = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool writes;
static sem_t counted, gate;
static long taken[MOST];

/* All locks at once, for reading or one of them for writing; some twice. */
static long mixed(int self)
{
    unsigned random = (unsigned)self + 1;
    for (long i = 0; i < iterations; i++) {
        random = random * 1103515245 + 12345;
        if (random >> 16 & 7) {
            for (int lock = 0; lock < LOCKS; lock++)
                EXPECT(0, pthread_rwlock_rdlock(&locks[lock]));
            long sum = 0;
            for (int lock = 0; lock < LOCKS; lock++)
                sum += written[lock];
            EXPECT(0, pthread_rwlock_tryrdlock(&locks[LOCKS - 1]));
            for (int lock = 0; lock < LOCKS; lock++)
                sum -= written[lock];
            REQUIRE(sum == 0);
            EXPECT(0, pthread_rwlock_unlock(&locks[LOCKS - 1]));
            for (int lock = LOCKS - 1; lock >= 0; lock--)
                EXPECT(0, pthread_rwlock_unlock(&locks[lock]));
        } else {
            int lock = (int)(random >> 19) % LOCKS;
            EXPECT(0, pthread_rwlock_wrlock(&locks[lock]));
            EXPECT(EDEADLK, pthread_rwlock_rdlock(&locks[lock]));
            written[lock]++;
            EXPECT(0, pthread_rwlock_unlock(&locks[lock]));
        }
    }
    return 0;
}

/* The first thread writes once main reads; main reads again meanwhile. */
static long write_behind_readers(int self)
{
    (void)self;
    pthread_mutex_lock(&mutex);
    writes = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    EXPECT(0, pthread_rwlock_wrlock(&busy));
    EXPECT(0, pthread_rwlock_unlock(&busy));
    return 0;
}

static void *writer(void *unused)
{
    write_behind_readers(0);
    return unused;
}

/* Each thread takes what others post, in bursts, and gives up in between. */
static long bursts(int self)
{
    for (long i = 0; i < iterations; i++) {
        for (int post = 0; post < 3; post++)
            EXPECT(0, sem_post(&counted));
        struct timespec at = deadline(CLOCK_REALTIME, i % 2);
        for (int wait = 0; wait < 4; wait++) {
            if (i % 3 ? sem_timedwait(&counted, &at) : sem_trywait(&counted))
                REQUIRE(errno == ETIMEDOUT || errno == EAGAIN);
            else
                taken[self]++;
        }
    }
    return 0;
}

/* The same semaphore, made anew each time, passes the turn to each thread once. */
static long once_each(int self)
{
    (void)self;
    return sem_wait(&gate) == 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 60);
    for (int lock = 0; lock < LOCKS; lock++)
        EXPECT(0, pthread_rwlock_init(&locks[lock], NULL));
    run_threads(threads, mixed);
    for (int lock = 0; lock < LOCKS; lock++)
        EXPECT(0, pthread_rwlock_destroy(&locks[lock]));

    for (int round = 0; round < 4; round++) {
        EXPECT(0, pthread_rwlock_rdlock(&busy));
        writes = false;
        pthread_t thread;
        EXPECT(0, pthread_create(&thread, NULL, writer, NULL));
        pthread_mutex_lock(&mutex);
        while (!writes)
            pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
        for (int again = 0; again < 100; again++)
            EXPECT(0, pthread_rwlock_rdlock(&busy));
        for (int again = 0; again <= 100; again++)
            EXPECT(0, pthread_rwlock_unlock(&busy));
        EXPECT(0, pthread_join(thread, NULL));
    }

    EXPECT(0, sem_init(&counted, 0, 0));
    run_threads(threads, bursts);
    long all = 0;
    int left;
    for (int thread = 0; thread < threads; thread++)
        all += taken[thread];
    EXPECT(0, sem_getvalue(&counted, &left));
    REQUIRE(all + left == 3 * iterations * threads);

    for (int round = 0; round < 8; round++) {
        EXPECT(0, sem_init(&gate, 0, (unsigned)threads));
        run_threads(threads, once_each);
        EXPECT(-1, sem_trywait(&gate));
        EXPECT(0, sem_destroy(&gate));
    }
    return pass();
}
