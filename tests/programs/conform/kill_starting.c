/* Threads are started while others are sent signals; the initial values of thread-local variables are in a page that threads write. */
#include "../harness.h"
#include <signal.h>
#include <unistd.h>

enum { SLEEPERS = 6, STARTED = 3 };

static __thread volatile int local[16] = {1, 2, 3};
/* Without protection after relocation it is in the page of these values. */
static volatile int beside[16] __attribute__((aligned(64))) = {1};
static volatile sig_atomic_t received;
static pthread_t sleepers[SLEEPERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ended;

static void on_signal(int signal)
{
    (void)signal;
    received = 1;
}

static bool has_ended(void)
{
    EXPECT(0, pthread_mutex_lock(&mutex));
    bool result = ended;
    EXPECT(0, pthread_mutex_unlock(&mutex));
    return result;
}

static void *sleep_on(void *unused)
{
    while (!has_ended())
        usleep(1000);
    return unused;
}

static void *write_on(void *unused)
{
    for (int i = 0; !has_ended(); i++)
        beside[1] = i;
    return unused;
}

static void *send_on(void *unused)
{
    while (!has_ended())
        for (int i = 0; i < SLEEPERS; i++)
            EXPECT(0, pthread_kill(sleepers[i], SIGUSR1));
    return unused;
}

static void *be_brief(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)local[1];
}

static pthread_t start(void *(*function)(void *))
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, function, NULL));
    return id;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 60);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < SLEEPERS; i++)
        sleepers[i] = start(sleep_on);
    pthread_t others[] = {start(write_on), start(send_on), start(send_on)};
    long sum = 0;
    for (long i = 0; i < iterations; i++) {
        pthread_t started[STARTED];
        for (int k = 0; k < STARTED; k++) {
            beside[3]++;
            started[k] = start(be_brief);
        }
        for (int k = 0; k < STARTED; k++) {
            void *result;
            EXPECT(0, pthread_join(started[k], &result));
            sum += (intptr_t)result;
        }
    }
    EXPECT(0, pthread_mutex_lock(&mutex));
    ended = true;
    EXPECT(0, pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 3; i++)
        EXPECT(0, pthread_join(others[i], NULL));
    for (int i = 0; i < SLEEPERS; i++)
        EXPECT(0, pthread_join(sleepers[i], NULL));
    EXPECT(iterations * STARTED * 2, sum);
    return pass();
}
