/* Threads, mutexes, conditions and once of C11. Prints what it computes, which does not depend on the order of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

static mtx_t plain, again;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static int begun, tickets, next_ticket;
static long sum;
static _Thread_local long own;

static void begin(void)
{
    begun++;
}

static int add(void *value)
{
    call_once(&once, begin);
    for (int at = 0; at < 100; at++) {
        mtx_lock(&again);
        mtx_lock(&again);
        own += *(int *)value;
        sum += *(int *)value;
        mtx_unlock(&again);
        mtx_unlock(&again);
    }
    mtx_lock(&plain);
    int ticket = tickets++;
    while (next_ticket != ticket)
        cnd_wait(&changed, &plain);
    next_ticket++;
    cnd_broadcast(&changed);
    mtx_unlock(&plain);
    if (own != 100L * *(int *)value)
        thrd_exit(-1);
    return *(int *)value;
}

int main(void)
{
    enum { THREADS = 12 };
    thrd_t threads[THREADS];
    int values[THREADS], result, results = 0;
    struct timespec until;
    mtx_init(&plain, mtx_timed);
    mtx_init(&again, mtx_plain | mtx_recursive);
    cnd_init(&changed);
    for (int at = 0; at < THREADS; at++) {
        values[at] = at + 1;
        if (thrd_create(&threads[at], add, &values[at]) != thrd_success)
            return 1;
    }
    for (int at = 0; at < THREADS; at++) {
        thrd_join(threads[at], &result);
        results += result;
    }
    mtx_lock(&plain);
    int busy = mtx_trylock(&plain);
    timespec_get(&until, TIME_UTC);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    int late = cnd_timedwait(&changed, &plain, &until);
    mtx_unlock(&plain);
    thrd_sleep(&(struct timespec){0, 1000}, NULL);
    thrd_yield();
    printf("%ld %d %d %d %d\n", sum, results, begun, busy == thrd_busy, late == thrd_timedout);
    return 0;
}
