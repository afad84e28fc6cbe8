/* Robust mutexes: who locks one after a thread has ended with it is told, mends the data or does not, and the others see
 * which. Codes are those of the C library. */
#include "../harness.h"
#include <time.h>

static pthread_mutex_t *make(int kind)
{
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    pthread_mutexattr_t attr;
    EXPECT(0, pthread_mutexattr_init(&attr));
    EXPECT(0, pthread_mutexattr_settype(&attr, kind));
    EXPECT(0, pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    EXPECT(0, pthread_mutex_init(mutex, &attr));
    EXPECT(0, pthread_mutexattr_destroy(&attr));
    return mutex;
}

static pthread_mutex_t *mutex;
static int locks;

static void *leaves_it_locked(void *by_exit)
{
    for (int i = 0; i < locks; i++)
        EXPECT(0, pthread_mutex_lock(mutex));
    if (by_exit)
        pthread_exit(NULL);
    return NULL;
}

static void *inherits_and_leaves(void *unused)
{
    EXPECT(EOWNERDEAD, pthread_mutex_lock(mutex));
    return unused;
}

static void *is_refused(void *unused)
{
    EXPECT(ENOTRECOVERABLE, pthread_mutex_lock(mutex));
    return unused;
}

static void *is_a_stranger(void *unused)
{
    EXPECT(EBUSY, pthread_mutex_trylock(mutex));
    EXPECT(EPERM, pthread_mutex_unlock(mutex));
    return unused;
}

static void in_thread(void *(*work)(void *), void *argument)
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, work, argument));
    EXPECT(0, pthread_join(id, NULL));
}

static struct timespec soon(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 60;
    return time;
}

static void one_kind(int kind)
{
    struct timespec limit = soon();
    mutex = make(kind);
    locks = kind == PTHREAD_MUTEX_RECURSIVE ? 3 : 1;
    EXPECT(EINVAL, pthread_mutex_consistent(mutex));

    in_thread(leaves_it_locked, NULL);
    EXPECT(EOWNERDEAD, pthread_mutex_lock(mutex));
    in_thread(is_a_stranger, NULL);
    EXPECT(0, pthread_mutex_consistent(mutex));
    EXPECT(EINVAL, pthread_mutex_consistent(mutex));
    if (kind == PTHREAD_MUTEX_RECURSIVE) {
        EXPECT(0, pthread_mutex_lock(mutex));
        EXPECT(0, pthread_mutex_trylock(mutex));
        EXPECT(0, pthread_mutex_unlock(mutex));
        EXPECT(0, pthread_mutex_unlock(mutex));
    } else if (kind == PTHREAD_MUTEX_ERRORCHECK) {
        EXPECT(EDEADLK, pthread_mutex_lock(mutex));
        EXPECT(EDEADLK, pthread_mutex_trylock(mutex));
    } else {
        EXPECT(EBUSY, pthread_mutex_trylock(mutex));
    }
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(EPERM, pthread_mutex_unlock(mutex));

    in_thread(leaves_it_locked, mutex);
    in_thread(inherits_and_leaves, NULL);
    EXPECT(EOWNERDEAD, pthread_mutex_trylock(mutex));
    EXPECT(0, pthread_mutex_consistent(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));

    in_thread(leaves_it_locked, NULL);
    EXPECT(EOWNERDEAD, pthread_mutex_timedlock(mutex, &limit));
    EXPECT(0, pthread_mutex_unlock(mutex));
    in_thread(is_refused, NULL);
    EXPECT(ENOTRECOVERABLE, pthread_mutex_timedlock(mutex, &limit));
    EXPECT(0, pthread_mutex_destroy(mutex));
    free(mutex);
}

static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static int has_left;

static void *signals_and_leaves(void *unused)
{
    EXPECT(0, pthread_mutex_lock(mutex));
    has_left = 1;
    EXPECT(0, pthread_cond_signal(&left));
    return unused;
}

static void in_conditions(void)
{
    pthread_t id;
    int code = 0;
    mutex = make(PTHREAD_MUTEX_NORMAL);
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(0, pthread_create(&id, NULL, signals_and_leaves, NULL));
    while (!has_left && !code)
        code = pthread_cond_wait(&left, mutex);
    EXPECT(EOWNERDEAD, code);
    EXPECT(1, has_left);
    EXPECT(0, pthread_mutex_consistent(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(0, pthread_join(id, NULL));
    EXPECT(0, pthread_mutex_destroy(mutex));
    free(mutex);
}

/* Whoever finds a sum unfinished finishes it. */
static long first, second, mended;

static long adds(int self)
{
    for (long i = 0; i < iterations; i++) {
        int code = pthread_mutex_lock(mutex);
        if (code == EOWNERDEAD) {
            second = first;
            mended++;
            EXPECT(0, pthread_mutex_consistent(mutex));
        } else {
            EXPECT(0, code);
        }
        REQUIRE(first == second);
        first++;
        if (i == iterations - 1)
            return 0;
        second++;
        EXPECT(0, pthread_mutex_unlock(mutex));
    }
    return self;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 50);
    one_kind(PTHREAD_MUTEX_NORMAL);
    one_kind(PTHREAD_MUTEX_RECURSIVE);
    one_kind(PTHREAD_MUTEX_ERRORCHECK);
    in_conditions();
    mutex = make(PTHREAD_MUTEX_NORMAL);
    run_threads(threads, adds);
    EXPECT(EOWNERDEAD, pthread_mutex_lock(mutex));
    EXPECT(threads * iterations, first);
    EXPECT(threads - 1, mended);
    return pass();
}
