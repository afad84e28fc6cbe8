/* Threads that block every signal still share memory; main takes signals by sigwait and by a handler of its own. */
#include "../harness.h"
#include <signal.h>
#include <unistd.h>

static long *table;
static pthread_barrier_t barrier;
static volatile sig_atomic_t handled;

static void on_usr1(int number)
{
    handled = number;
}

static long work(int self)
{
    long violations = 0;
    sigset_t all, old;
    sigfillset(&all);
    EXPECT(0, pthread_sigmask(SIG_SETMASK, &all, &old));
    for (long round = 0; round < iterations; round++) {
        for (int i = self; i < 5000; i += threads)
            table[i] = round + i;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 5000; i++)
            violations += table[i] != round + i;
        pthread_barrier_wait(&barrier);
    }
    EXPECT(0, pthread_sigmask(SIG_SETMASK, NULL, &old));
    violations += !sigismember(&old, SIGTERM) || !sigismember(&old, SIGUSR1);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 50);
    table = malloc(5000 * sizeof *table);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);

    struct sigaction action = {.sa_handler = on_usr1}, old;
    EXPECT(0, sigaction(SIGUSR1, &action, &old));
    REQUIRE(old.sa_handler == SIG_DFL);
    EXPECT(0, raise(SIGUSR1));
    EXPECT(SIGUSR1, handled);
    EXPECT(0, sigaction(SIGUSR1, NULL, &old));
    REQUIRE(old.sa_handler == on_usr1);

    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &usr2, NULL));
    EXPECT(0, kill(getpid(), SIGUSR2));
    int got = 0;
    EXPECT(0, sigwait(&usr2, &got));
    EXPECT(SIGUSR2, got);
    return verdict(violations, "threads with blocked signals read old data");
}
