/* Timers that expire in threads which the C library starts: their functions use shared memory and what synchronises it. */
#include "../harness.h"
#include <signal.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t expired = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static long expirations[MAX_THREADS], destroyed;
static char *pages;

static void destroy(void *value)
{
    pthread_mutex_lock(&mutex);
    destroyed += *(char *)value;
    pthread_mutex_unlock(&mutex);
}

static void expire(union sigval value)
{
    int self = value.sival_int;
    EXPECT(0, pthread_setspecific(key, &pages[0]));
    EXPECT(0, pthread_mutex_lock(&mutex));
    pages[(size_t)(self + 1) * PAGE] = (char)(self + 1);
    expirations[self]++;
    EXPECT(0, pthread_cond_broadcast(&expired));
    EXPECT(0, pthread_mutex_unlock(&mutex));
}

static long waits(int self)
{
    struct sigevent event = {0};
    struct itimerspec every = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = expire;
    event.sigev_value.sival_int = self;
    EXPECT(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
    EXPECT(0, timer_settime(timer, 0, &every, NULL));
    EXPECT(0, pthread_mutex_lock(&mutex));
    while (expirations[self] < iterations)
        EXPECT(0, pthread_cond_wait(&expired, &mutex));
    long wrong = pages[(size_t)(self + 1) * PAGE] != self + 1;
    EXPECT(0, pthread_mutex_unlock(&mutex));
    EXPECT(0, timer_delete(timer));
    return wrong;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 20);
    pages = calloc((size_t)threads + 1, PAGE);
    REQUIRE(pages);
    pages[0] = 1;
    EXPECT(0, pthread_key_create(&key, destroy));
    long wrong = run_threads(threads, waits);
    EXPECT(0, pthread_mutex_lock(&mutex));
    wrong += destroyed == 0;
    EXPECT(0, pthread_mutex_unlock(&mutex));
    return verdict(wrong, "a timer's function was not as it should be");
}
