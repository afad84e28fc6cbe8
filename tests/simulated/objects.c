/* Every object that threads wait at, thread-local variables, spinning on a plain flag, time. Prints "ok", or what is wrong. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 200 };

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t semaphore;
static long counter, spun, atomically, calls, destroyed, turn;
static volatile int flag;
static __thread long own = 7;

static void call_once(void)
{
    calls++;
}

static void destroy(void *value)
{
    destroyed += (long)value;
}

static void *work(void *argument)
{
    long self = (long)argument;
    EXPECT(own == 7);
    own = self;
    errno = (int)self;
    pthread_setspecific(key, (void *)(self + 1));
    pthread_once(&once, call_once);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&mutex);
        long seen = counter;
        if (round % 16 == 0)
            sched_yield();
        counter = seen + 1;
        pthread_mutex_unlock(&mutex);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
        __atomic_fetch_add(&atomically, 1, __ATOMIC_SEQ_CST);
        if (self % 2) {
            pthread_rwlock_rdlock(&rwlock);
            EXPECT(turn % 2 == 0);
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_wrlock(&rwlock);
            turn++;
            sched_yield();
            turn++;
            pthread_rwlock_unlock(&rwlock);
        }
    }
    EXPECT(own == self && errno == (int)self);
    int last = pthread_barrier_wait(&barrier);
    EXPECT(last == 0 || last == PTHREAD_BARRIER_SERIAL_THREAD);
    EXPECT(counter == THREADS * ROUNDS && spun == counter && atomically == counter);
    if (last == PTHREAD_BARRIER_SERIAL_THREAD)
        flag = 1;
    while (!flag)
        ;
    sem_post(&semaphore);
    pthread_mutex_lock(&mutex);
    while (flag != 2)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    if (self == 3)
        pthread_exit((void *)(self * 2));
    return (void *)(self * 2);
}

static void later(struct timespec *when, long milliseconds)
{
    clock_gettime(CLOCK_REALTIME, when);
    when->tv_nsec += milliseconds * 1000000;
    when->tv_sec += when->tv_nsec / 1000000000;
    when->tv_nsec %= 1000000000;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 0);
    EXPECT(pthread_key_create(&key, destroy) == 0);
    for (long i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        EXPECT(sem_wait(&semaphore) == 0);
    EXPECT(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
    struct timespec when, before, after;
    later(&when, 5);
    clock_gettime(CLOCK_MONOTONIC, &before);
    EXPECT(sem_timedwait(&semaphore, &when) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long waited = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    EXPECT(waited >= 4900000 && waited < 5200000);
    pthread_mutex_lock(&mutex);
    later(&when, 1);
    EXPECT(pthread_cond_timedwait(&condition, &mutex, &when) == ETIMEDOUT);
    flag = 2;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    for (long i = 0; i < THREADS; i++) {
        void *result;
        EXPECT(pthread_join(threads[i], &result) == 0 && (long)result == 2 * i);
    }
    EXPECT(own == 7 && calls == 1 && destroyed == THREADS * (THREADS + 1) / 2);
    pthread_mutexattr_t attributes;
    pthread_mutex_t recursive;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    EXPECT(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_trylock(&recursive) == 0);
    EXPECT(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
    EXPECT(pthread_mutex_unlock(&recursive) == EPERM && pthread_mutex_destroy(&recursive) == 0);
    usleep(1000);
    EXPECT(sysconf(_SC_NPROCESSORS_ONLN) == 16);
    char *block = calloc(1000, 1);
    block = realloc(strcpy(block, "kept"), 100000);
    EXPECT(strcmp(block, "kept") == 0);
    free(block);
    puts("ok");
    return 0;
}
