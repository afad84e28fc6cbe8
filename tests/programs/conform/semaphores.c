/* Unnamed semaphores: values, errors, timeouts, and a limit on how many threads are inside. */
#include "../harness.h"
#include "deadline.h"
#include <limits.h>
#include <semaphore.h>

#define EXPECT_ERRNO(code, expression)          \
    do {                                        \
        errno = 0;                              \
        EXPECT(-1, expression);                 \
        EXPECT(code, errno);                    \
    } while (0)

static sem_t *gate;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int inside, most;

static long pass_gate(int self)
{
    (void)self;
    for (long i = 0; i < iterations; i++) {
        EXPECT(0, sem_wait(gate));
        pthread_mutex_lock(&mutex);
        inside++;
        most = inside > most ? inside : most;
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&mutex);
        inside--;
        pthread_mutex_unlock(&mutex);
        EXPECT(0, sem_post(gate));
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 5, 100);
    sem_t sem;
    int value = -1;
    EXPECT_ERRNO(EINVAL, sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1));
    EXPECT(0, sem_init(&sem, 0, 2));
    EXPECT(0, sem_trywait(&sem));
    EXPECT(0, sem_wait(&sem));
    EXPECT(0, sem_getvalue(&sem, &value));
    EXPECT(0, value);
    EXPECT_ERRNO(EAGAIN, sem_trywait(&sem));
    struct timespec at = deadline(CLOCK_REALTIME, 30);
    EXPECT_ERRNO(ETIMEDOUT, sem_timedwait(&sem, &at));
    REQUIRE(passed(CLOCK_REALTIME, at));
    at = deadline(CLOCK_MONOTONIC, 30);
    EXPECT_ERRNO(ETIMEDOUT, sem_clockwait(&sem, CLOCK_MONOTONIC, &at));
    REQUIRE(passed(CLOCK_MONOTONIC, at));
    EXPECT_ERRNO(EINVAL, sem_timedwait(&sem, &invalid_time));
    EXPECT_ERRNO(EINVAL, sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &at));
    EXPECT(0, sem_post(&sem));
    EXPECT(0, sem_timedwait(&sem, &at)); /* available: the time does not matter */
    EXPECT(0, sem_destroy(&sem));
    EXPECT(0, sem_init(&sem, 0, SEM_VALUE_MAX));
    EXPECT_ERRNO(EOVERFLOW, sem_post(&sem));
    EXPECT(0, sem_destroy(&sem));

    gate = malloc(sizeof *gate);
    EXPECT(0, sem_init(gate, 0, 2));
    run_threads(threads, pass_gate);
    REQUIRE(most == 1 || most == 2);
    EXPECT(0, sem_getvalue(gate, &value));
    EXPECT(2, value);
    return pass();
}
