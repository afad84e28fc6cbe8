/* The numbers of the process and its threads, and signals to the process, wherever a thread runs. */
#include "../harness.h"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t process, parent, numbers[MAX_THREADS];
static volatile sig_atomic_t came, last_value;
static pthread_barrier_t all;

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)context;
    last_value = info->si_value.sival_int;
    if (info->si_pid != process)
        came += 1000;
    came += signal == SIGUSR1 || signal == SIGRTMIN;
}

static long look(int self)
{
    numbers[self] = gettid();
    return getpid() != process || syscall(SYS_getpid) != process || getppid() != parent || kill(getpid(), 0) != 0 ||
           syscall(SYS_gettid) != numbers[self];
}

/* Each thread in turn sends the process a signal, which main takes: it alone does not block it. */
static long send(int self)
{
    for (int turn = 0; turn < threads; turn++) {
        if (self == turn) {
            union sigval value = {.sival_int = 40 + self};
            EXPECT(0, self % 2 ? kill(process, SIGUSR1) : sigqueue(getpid(), SIGRTMIN, value));
        }
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&all);
    }
    return 0;
}

/* A thread that waits for signals which all block, as daemons have it. */
static void *take(void *count)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    long taken = 0;
    for (int i = 0; i < (int)(intptr_t)count; i++) {
        int signal = 0;
        EXPECT(0, sigwait(&set, &signal));
        taken += signal == SIGTERM ? 100 : 1;
    }
    struct timespec moment = {0, 1000000};
    EXPECT(-1, sigtimedwait(&set, NULL, &moment));
    EXPECT(EAGAIN, errno);
    return (void *)taken;
}

static pthread_t taker;

static void *kill_once(void *which)
{
    EXPECT(0, which ? kill(getpid(), SIGTERM) : pthread_kill(taker, SIGUSR2));
    return NULL;
}

/* A signal by the number of a thread comes to that thread. */
static _Thread_local volatile sig_atomic_t own;

static void on_own(int signal)
{
    (void)signal;
    own++;
}

static long by_number(int self)
{
    numbers[self] = gettid();
    pthread_barrier_wait(&all);
    int other = (self + 1) % threads;
    EXPECT(0, tgkill(getpid(), numbers[other], SIGUSR2));
    while (own == 0)
        usleep(1000);
    pthread_barrier_wait(&all);
    long wrong = own != 1;
    EXPECT(0, raise(SIGUSR2));
    wrong += own != 2;
    pthread_barrier_wait(&all);
    return wrong;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    process = getpid();
    parent = getppid();
    EXPECT(process, gettid());
    EXPECT(0, run_threads(threads, look));
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));

    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART, .sa_sigaction = on_signal};
    EXPECT(0, sigaction(SIGUSR1, &action, NULL) | sigaction(SIGRTMIN, &action, NULL));
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGRTMIN);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &blocked, &before));
    EXPECT(0, pthread_barrier_destroy(&all) | pthread_barrier_init(&all, NULL, threads + 1));
    pthread_t ids[MAX_THREADS];
    harness_work = send;
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, harness_thread, (void *)(intptr_t)i));
    EXPECT(0, pthread_sigmask(SIG_SETMASK, &before, NULL));
    for (int i = 0; i < threads; i++) {
        pthread_barrier_wait(&all);
        while (came <= i)
            usleep(1000);
        EXPECT(i + 1, came);
        if (i % 2 == 0)
            EXPECT(40 + i, last_value);
        pthread_barrier_wait(&all);
    }
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(ids[i], NULL));

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGTERM);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    EXPECT(0, pthread_create(&taker, NULL, take, (void *)(intptr_t)threads));
    for (int i = 0; i < threads; i++) {
        pthread_t id;
        /* One after the other: equal signals that are pending count once. */
        EXPECT(0, pthread_create(&id, NULL, kill_once, (void *)(intptr_t)(i % 2)));
        EXPECT(0, pthread_join(id, NULL));
        usleep(20000);
    }
    void *taken;
    EXPECT(0, pthread_join(taker, &taken));
    EXPECT(threads / 2 * 100 + (threads - threads / 2), (intptr_t)taken);
    EXPECT(0, pthread_sigmask(SIG_SETMASK, &before, NULL));

    EXPECT(0, pthread_barrier_destroy(&all) | pthread_barrier_init(&all, NULL, threads));
    signal(SIGUSR2, on_own);
    EXPECT(0, run_threads(threads, by_number));
    for (int i = 0; i < threads; i++)
        for (int j = 0; j < i; j++)
            EXPECT(1, numbers[i] != numbers[j]);
    return pass();
}
