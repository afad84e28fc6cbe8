/* All threads but one block a signal to the process: that one takes it, wherever it is, while it computes or waits for it, or when it unblocks it. */
#include "../harness.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, WAYS = 4, VALUE = 4711 };

static pthread_barrier_t barrier;
static volatile sig_atomic_t got, taken_by;
static __thread int number = -1;
static sigset_t ours, none;

static void note(int signal, siginfo_t *info, void *context)
{
    (void)context;
    taken_by = number;
    got = info->si_code == SI_QUEUE ? info->si_value.sival_int : signal;
}

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

static void await_handler(void)
{
    for (int i = 0; i < 5000 && !got; i++)
        usleep(1000);
}

/* The one that takes the signal. */
static void take(int way)
{
    switch (way) {
    case 0:
        pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
        meet();
        await_handler();
        break;
    case 1:
        meet();
        while (!got)
            sigsuspend(&none);
        break;
    case 2:
        /* Computing, it takes a signal of another process. */
        pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
        meet();
        while (!got)
            ;
        break;
    default:
        meet();
        usleep(20000);
        EXPECT(0, got);
        pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
        await_handler();
    }
    pthread_sigmask(SIG_BLOCK, &ours, NULL);
}

static void send(int way)
{
    if (way == 2) {
        pid_t child = fork();
        if (child == 0)
            _exit(kill(getppid(), SIGUSR1));
        EXPECT((long)child, (long)waitpid(child, NULL, 0));
    } else if (way == 1) {
        EXPECT(0, sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = VALUE}));
    } else {
        EXPECT(0, kill(getpid(), SIGUSR1));
    }
}

static long work(int self)
{
    number = self;
    for (int taker = 0; taker < THREADS; taker++)
        for (int way = 0; way < WAYS; way++) {
            meet();
            if (self == taker) {
                take(way);
                EXPECT(taker, taken_by);
                EXPECT(way == 1 ? VALUE : SIGUSR1, got);
                got = 0;
            } else {
                meet();
                if (self == (taker + 1) % THREADS)
                    send(way);
            }
            meet();
        }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &ours, NULL);
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    EXPECT(0, sigaction(SIGUSR1, &action, NULL));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, THREADS));
    run_threads(THREADS, work);
    return pass();
}
