/* Waits for semaphores and futexes end when a handler of a signal has run, or begin again if its action says so and no time is given. */
#include "../harness.h"
#include <errno.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum way { SEMAPHORE, TIMED_SEMAPHORE, FUTEX, TIMED_FUTEX, WAYS };

/* Main and the threads use it by turns. */
static struct area {
    sem_t semaphore;
    uint32_t word;
    enum way way;
    pthread_mutex_t mutex;
    int handled, result, error;
    bool done;
} *area;

static void on_signal(int number)
{
    pthread_mutex_lock(&area->mutex);
    area->handled += number == SIGUSR1;
    pthread_mutex_unlock(&area->mutex);
}

static long wait_once(void)
{
    struct timespec time, longest = {60, 0};
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 60;
    switch (area->way) {
    case SEMAPHORE: return sem_wait(&area->semaphore);
    case TIMED_SEMAPHORE: return sem_timedwait(&area->semaphore, &time);
    case FUTEX: return syscall(SYS_futex, &area->word, FUTEX_WAIT, 0, NULL);
    default: return syscall(SYS_futex, &area->word, FUTEX_WAIT, 0, &longest);
    }
}

static void *wait_there(void *unused)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    long result = wait_once();
    int error = errno;
    /* The handler takes the mutex. */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_mutex_lock(&area->mutex);
    area->result = (int)result;
    area->error = error;
    area->done = true;
    pthread_mutex_unlock(&area->mutex);
    return unused;
}

static bool is_done(int *handled)
{
    pthread_mutex_lock(&area->mutex);
    bool done = area->done;
    *handled = area->handled;
    pthread_mutex_unlock(&area->mutex);
    return done;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    area = calloc(1, sizeof *area);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
        EXPECT(0, sigaction(SIGUSR1, &action, NULL));
        for (int way = 0; way < WAYS; way++) {
            memset(area, 0, sizeof *area);
            pthread_mutex_init(&area->mutex, NULL);
            sem_init(&area->semaphore, 0, 0);
            area->way = way;
            pthread_t thread;
            EXPECT(0, pthread_create(&thread, NULL, wait_there, NULL));
            bool again = flags == SA_RESTART && (way == SEMAPHORE || way == FUTEX);
            int handled = 0;
            /* Signals may come before the wait or after it. */
            while (!is_done(&handled) && !(again && handled >= 5)) {
                EXPECT(0, pthread_kill(thread, SIGUSR1));
                struct timespec moment = {0, 200000};
                nanosleep(&moment, NULL);
            }
            if (again) {
                sem_post(&area->semaphore);
                __atomic_store_n(&area->word, 1, __ATOMIC_SEQ_CST);
                while (!is_done(&handled)) {
                    syscall(SYS_futex, &area->word, FUTEX_WAKE, 1);
                }
            }
            EXPECT(0, pthread_join(thread, NULL));
            EXPECT(again ? 0 : -1, area->result);
            REQUIRE(again || area->error == EINTR);
        }
    }
    return pass();
}
