/* What tells the thread that runs main from all others: its number is the process's, calls that name the process by that number are
 * about it, and signals to the process come to it, although other threads would take them.
 */
#include "../harness.h"
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_t main_thread;
static volatile sig_atomic_t in_main, elsewhere;
static pthread_barrier_t barrier;

static void on_signal(int signal)
{
    (void)signal;
    if (pthread_equal(pthread_self(), main_thread))
        in_main++;
    else
        elsewhere++;
}

static void *wait_there(void *unused)
{
    REQUIRE(gettid() != getpid());
    pthread_barrier_wait(&barrier);
    /* Threads that run take signals sooner than those that wait. */
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t others[MAX_THREADS];
    cpu_set_t before, one, now;
    int processor = 0;

    parse(argc, argv, 4, 20);
    main_thread = pthread_self();
    EXPECT(getpid(), gettid());
    EXPECT(getpid(), syscall(SYS_gettid));

    EXPECT(0, sched_getaffinity(getpid(), sizeof before, &before));
    while (!CPU_ISSET(processor, &before))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    EXPECT(0, sched_setaffinity(getpid(), sizeof one, &one));
    EXPECT(0, sched_getaffinity(0, sizeof now, &now));
    REQUIRE(CPU_EQUAL(&one, &now));
    EXPECT(0, sched_setaffinity(0, sizeof before, &before));
    EXPECT(0, sched_getaffinity(getpid(), sizeof now, &now));
    REQUIRE(CPU_EQUAL(&before, &now));
    EXPECT(0, setpriority(PRIO_PROCESS, getpid(), getpriority(PRIO_PROCESS, 0) + 1));
    EXPECT(getpriority(PRIO_PROCESS, getpid()), getpriority(PRIO_PROCESS, 0));
    EXPECT(sched_getscheduler(0), sched_getscheduler(getpid()));

    signal(SIGUSR1, on_signal);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1));
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&others[i], NULL, wait_there, NULL));
    pthread_barrier_wait(&barrier);
    for (int i = 1; i <= iterations; i++) {
        EXPECT(0, kill(getpid(), SIGUSR1));
        while (in_main + elsewhere < i)
            sched_yield();
    }
    EXPECT(iterations, in_main);
    EXPECT(0, tgkill(getpid(), gettid(), SIGUSR1));
    EXPECT(iterations + 1, in_main);

    /* A timer's signal for the process, and one for this thread. */
    const struct itimerspec soon = {{0, 0}, {0, 1000000}};
    for (int i = 0; i < 2; i++) {
        struct sigevent event = {.sigev_notify = i ? SIGEV_THREAD_ID : SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        timer_t timer;
        if (i)
            event._sigev_un._tid = gettid();
        EXPECT(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
        EXPECT(0, timer_settime(timer, 0, &soon, NULL));
        while (in_main + elsewhere < iterations + 2 + i)
            sched_yield();
        EXPECT(0, timer_delete(timer));
    }
    EXPECT(0, elsewhere);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(others[i], NULL));
    return pass();
}
