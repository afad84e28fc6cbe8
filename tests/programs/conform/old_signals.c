/* The older ways to handle signals: also of those that a program expects to die of, and in handlers that use memory
 * which other threads have used last. */
#define _DEFAULT_SOURCE
#include "../harness.h"
#include <signal.h>

/* The C library says that of sigset. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static pthread_barrier_t barrier;
static int *shared;
static volatile sig_atomic_t handled[MAX_THREADS];
static __thread int me;

static void unexpected(int signal)
{
    fail("signal %d", signal);
}

static void count(int signal)
{
    handled[me]++;
    for (int i = 0; i < 16; i++)
        shared[i * PAGE / sizeof(int)] += signal == SIGUSR1;
}

static long work(int self)
{
    me = self;
    sigset_t user, others;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigfillset(&others);
    sigdelset(&others, SIGUSR1);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &user, NULL));
    for (int turn = 0; turn < threads; turn++) {
        if (turn == self) {
            EXPECT(0, pthread_kill(pthread_self(), SIGUSR1));
            EXPECT(-1, sigsuspend(&others));
            EXPECT(EINTR, errno);
        }
        pthread_barrier_wait(&barrier);
    }
    EXPECT(1, handled[self]);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(sysv_signal(SIGBUS, unexpected) == SIG_DFL);
    REQUIRE(sysv_signal(SIGSEGV, unexpected) == SIG_DFL);
    REQUIRE(ssignal(SIGUSR1, count) == SIG_DFL);
    shared = calloc(16, PAGE);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, threads));
    run_threads(threads, work);
    EXPECT(threads, shared[15 * PAGE / sizeof(int)]);
    REQUIRE(sysv_signal(SIGBUS, SIG_DFL) == unexpected);
    REQUIRE(sysv_signal(SIGUSR1, SIG_DFL) == count);
    REQUIRE(sigset(SIGUSR1, count) == SIG_DFL);
    REQUIRE(sigset(SIGUSR1, SIG_HOLD) == count);
    REQUIRE(sigset(SIGUSR1, SIG_IGN) == SIG_HOLD);
    REQUIRE(sigset(SIGUSR1, SIG_DFL) == SIG_IGN);
    return pass();
}
