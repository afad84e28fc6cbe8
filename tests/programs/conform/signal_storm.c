/* Threads change how signals are handled while signals arrive, whose handler does the same. */
#include "../harness.h"
#include <signal.h>
#include <sys/time.h>

enum { ENOUGH = 200 };

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    struct sigaction old;
    sigaction(signal, NULL, &old);
    sigaction(signal, &old, NULL);
    handled++;
}

static void install(int signal)
{
    struct sigaction action = {.sa_handler = handler};
    EXPECT(0, sigaction(signal, &action, NULL));
}

static long work(int self)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < iterations; i++)
        install(self % 2 ? SIGUSR2 : SIGHUP);
    return 0;
}

/* One signal soon: a handler may take longer than any interval. */
static void soon(void)
{
    struct itimerval times = {{0, 0}, {0, 100}};
    EXPECT(0, setitimer(ITIMER_REAL, &times, NULL));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 200);
    install(SIGUSR2);
    install(SIGALRM);
    for (int seen = -1; handled < ENOUGH; install(SIGUSR2)) {
        if (handled != seen) {
            seen = handled;
            soon();
        }
    }
    soon();
    return verdict(run_threads(threads, work), "a signal went wrong");
}
