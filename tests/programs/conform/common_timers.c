/* Interval timers are the process's: one for all threads, and a signal comes once. */
#include "../harness.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, rings;
static timer_t timer;
static sigset_t both;

static void on_alarm(int signal)
{
    if (signal == SIGALRM)
        alarms++;
    else
        rings++;
}

static void *one(void *work)
{
    return (void *)(intptr_t)((long (*)(void))work)();
}

/* Runs it in a new thread, which blocks the signals: each on the next node. */
static long in_thread(long (*work)(void))
{
    pthread_t id;
    void *result = NULL;
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &both, NULL));
    EXPECT(0, pthread_create(&id, NULL, one, (void *)work));
    EXPECT(0, pthread_sigmask(SIG_UNBLOCK, &both, NULL));
    EXPECT(0, pthread_join(id, &result));
    return (long)(intptr_t)result;
}

static long set_alarm(void)
{
    return alarm(1000);
}

static long short_alarm(void)
{
    struct itimerval soon = {.it_value = {0, 20000}}, old;
    EXPECT(0, setitimer(ITIMER_REAL, &soon, &old));
    return old.it_value.tv_sec;
}

static long left(void)
{
    struct itimerval now;
    EXPECT(0, getitimer(ITIMER_REAL, &now));
    return now.it_value.tv_sec;
}

static long make(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static long set_timer(void)
{
    struct itimerspec soon = {.it_value = {0, 10000000}}, old;
    long result = timer_settime(timer, 0, &soon, &old);
    return result + old.it_value.tv_sec;
}

static long look_at_timer(void)
{
    struct itimerspec now;
    EXPECT(0, timer_gettime(timer, &now));
    return now.it_value.tv_sec + now.it_value.tv_nsec;
}

static long delete_timer(void)
{
    return timer_delete(timer);
}

static long lower_limit(void)
{
    struct rlimit limit;
    EXPECT(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = 123456789;
    EXPECT(0, setrlimit(RLIMIT_FSIZE, &limit));
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_cur > 150 ? 150 : limit.rlim_cur - 1;
    EXPECT(0, prlimit(getpid(), RLIMIT_NOFILE, &limit, NULL));
    return limit.rlim_cur;
}

static long size_limit(void)
{
    struct rlimit limit;
    EXPECT(0, prlimit(0, RLIMIT_FSIZE, NULL, &limit));
    return limit.rlim_cur;
}

static long file_limit(void)
{
    struct rlimit limit;
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &limit));
    return limit.rlim_cur;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 2);
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGRTMIN + 1);
    signal(SIGALRM, on_alarm);
    signal(SIGRTMIN + 1, on_alarm);
    for (int round = 0; round < iterations; round++) {
        EXPECT(0, in_thread(set_alarm));
        EXPECT(1, left() > 990);
        EXPECT(1, in_thread(left) > 990);
        EXPECT(1, in_thread(set_alarm) > 990);
        EXPECT(1, in_thread(short_alarm) > 990);
        while (alarms == round)
            usleep(1000);
        usleep(50000);
        EXPECT(round + 1, alarms);
        EXPECT(0, in_thread(left));
        EXPECT(0, in_thread(set_alarm));
        EXPECT(1, alarm(0) > 990);

        EXPECT(0, in_thread(make));
        EXPECT(0, in_thread(look_at_timer));
        EXPECT(0, in_thread(set_timer));
        while (rings == round)
            usleep(1000);
        usleep(50000);
        EXPECT(round + 1, rings);
        EXPECT(0, look_at_timer());
        EXPECT(0, in_thread(delete_timer));
        EXPECT(-1, in_thread(delete_timer));
    }
    long files = in_thread(lower_limit);
    for (int i = 0; i < threads; i++) {
        EXPECT(123456789, in_thread(size_limit));
        EXPECT(files, in_thread(file_limit));
    }
    return pass();
}
