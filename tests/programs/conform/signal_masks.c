/* Waiting with all signals blocked, by the calls that take a mask: handlers that run meanwhile touch shared memory. */
#include "../harness.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

static int pages[64 * 1024];
static volatile int handled;
static pthread_barrier_t barrier;

static void on_alarm(int signal)
{
    (void)signal;
    for (int i = 0; i < 64 * 1024; i += 1024)
        pages[i]++; /* most are on the other node */
    handled++;
}

static void waits(int how, const sigset_t *mask)
{
    int epoll = epoll_create1(0);
    struct epoll_event event;
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    long result = how == 0   ? ppoll(NULL, 0, NULL, mask)
                  : how == 1 ? pselect(0, NULL, NULL, NULL, NULL, mask)
                             : epoll_pwait(epoll, &event, 1, -1, mask);
    EXPECT(-1, result);
    EXPECT(EINTR, errno);
    EXPECT(how + 1, handled);
}

static void *other(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 64 * 1024; i += 1024)
            pages[i] += 100;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    pthread_t thread;
    sigset_t blocked, mask;
    struct sigaction action = {.sa_handler = on_alarm};
    EXPECT(0, sigaction(SIGALRM, &action, NULL));
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    sigfillset(&mask);
    sigdelset(&mask, SIGALRM); /* with the signals of faults blocked natively */
    EXPECT(0, pthread_barrier_init(&barrier, NULL, 2));
    EXPECT(0, pthread_create(&thread, NULL, other, NULL));
    for (int how = 0; how < 3; how++) {
        pthread_barrier_wait(&barrier);
        waits(how, &mask);
        for (int i = 0; i < 64 * 1024; i += 1024)
            EXPECT(101 * (how + 1), pages[i]);
        pthread_barrier_wait(&barrier);
    }
    EXPECT(0, pthread_join(thread, NULL));
    return pass();
}
