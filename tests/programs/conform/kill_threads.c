/* Signals from each thread to each: to those that wait for one, and to those that are busy. */
#include "../harness.h"
#include <signal.h>

static pthread_t ids[MAX_THREADS];
static pthread_barrier_t barrier;
static volatile sig_atomic_t interrupted[MAX_THREADS];
static __thread int me;

static void note(int signal)
{
    interrupted[me] = signal;
}

static long work(int self)
{
    me = self;
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &user, NULL));
    ids[self] = pthread_self();
    for (int sender = 0; sender < threads; sender++) {
        pthread_barrier_wait(&barrier);
        if (self == sender)
            for (int other = 0; other < threads; other++) {
                EXPECT(0, pthread_kill(ids[other], 0));
                EXPECT(0, pthread_kill(ids[other], SIGUSR1));
                EXPECT(EINVAL, pthread_kill(ids[other], 1000));
            }
        int signal = 0;
        EXPECT(0, sigwait(&user, &signal));
        EXPECT(SIGUSR1, signal);
    }
    pthread_barrier_wait(&barrier);
    EXPECT(0, pthread_kill(ids[(self + 1) % threads], SIGUSR2));
    while (!interrupted[self])
        ;
    EXPECT(SIGUSR2, interrupted[self]);
    pthread_barrier_wait(&barrier);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    struct sigaction action = {.sa_handler = note};
    EXPECT(0, sigaction(SIGUSR2, &action, NULL));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, threads));
    run_threads(threads, work);
    return pass();
}
