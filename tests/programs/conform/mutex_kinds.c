/* Error codes of normal, recursive and error-checking mutexes, from the owner and from another thread. */
#include "../harness.h"

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t *heap_recursive, *heap_checking;

static pthread_mutex_t *make(int kind)
{
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    pthread_mutexattr_t attr;
    int found = -1;
    EXPECT(0, pthread_mutexattr_init(&attr));
    EXPECT(0, pthread_mutexattr_settype(&attr, kind));
    EXPECT(0, pthread_mutexattr_gettype(&attr, &found));
    EXPECT(kind, found);
    EXPECT(0, pthread_mutex_init(mutex, &attr));
    EXPECT(0, pthread_mutexattr_destroy(&attr));
    return mutex;
}

/* In another thread while main holds every mutex. */
static long as_stranger(int self)
{
    (void)self;
    EXPECT(EBUSY, pthread_mutex_trylock(&normal));
    EXPECT(EBUSY, pthread_mutex_trylock(&recursive));
    EXPECT(EBUSY, pthread_mutex_trylock(&checking));
    EXPECT(EBUSY, pthread_mutex_trylock(heap_recursive));
    EXPECT(EBUSY, pthread_mutex_trylock(heap_checking));
    EXPECT(EPERM, pthread_mutex_unlock(&recursive));
    EXPECT(EPERM, pthread_mutex_unlock(&checking));
    EXPECT(EPERM, pthread_mutex_unlock(heap_recursive));
    EXPECT(EPERM, pthread_mutex_unlock(heap_checking));
    return 0;
}

/* In another thread when main has let go of every mutex. */
static long as_successor(int self)
{
    (void)self;
    pthread_mutex_t *all[] = {&normal, &recursive, &checking, heap_recursive, heap_checking};
    for (int i = 0; i < 5; i++) {
        EXPECT(0, pthread_mutex_trylock(all[i]));
        EXPECT(0, pthread_mutex_unlock(all[i]));
    }
    return 0;
}

static void recursive_as_owner(pthread_mutex_t *mutex)
{
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(0, pthread_mutex_trylock(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex));
    EXPECT(0, pthread_mutex_unlock(mutex)); /* still held once */
}

static void checking_as_owner(pthread_mutex_t *mutex)
{
    EXPECT(EPERM, pthread_mutex_unlock(mutex));
    EXPECT(0, pthread_mutex_lock(mutex));
    EXPECT(EDEADLK, pthread_mutex_lock(mutex));
    EXPECT(EBUSY, pthread_mutex_trylock(mutex));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    heap_recursive = make(PTHREAD_MUTEX_RECURSIVE);
    heap_checking = make(PTHREAD_MUTEX_ERRORCHECK);

    EXPECT(0, pthread_mutex_lock(&normal));
    EXPECT(EBUSY, pthread_mutex_trylock(&normal));
    recursive_as_owner(&recursive);
    recursive_as_owner(heap_recursive);
    checking_as_owner(&checking);
    checking_as_owner(heap_checking);
    EXPECT(EBUSY, pthread_mutex_destroy(&normal));
    run_threads(1, as_stranger);

    pthread_mutex_t *all[] = {&normal, &recursive, &checking, heap_recursive, heap_checking};
    for (int i = 0; i < 5; i++)
        EXPECT(0, pthread_mutex_unlock(all[i]));
    EXPECT(EPERM, pthread_mutex_unlock(&recursive));
    EXPECT(EPERM, pthread_mutex_unlock(&checking));
    run_threads(1, as_successor);
    for (int i = 0; i < 5; i++)
        EXPECT(0, pthread_mutex_destroy(all[i]));

    pthread_mutexattr_t attr;
    EXPECT(0, pthread_mutexattr_init(&attr));
    EXPECT(EINVAL, pthread_mutexattr_settype(&attr, 99));
    return pass();
}
