/* Threads are cancelled wherever they run and wait: in cancellation points, or anywhere if they want that. */
#include "../harness.h"
#include <poll.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none, late, ready;
static pthread_key_t key;
static pthread_t sleepers[MAX_THREADS];

/* What a thread has done while it ended, in order. */
struct log {
    int count;
    char what[16];
};

static struct log logs[MAX_THREADS];

static void note(struct log *log, char what)
{
    log->what[log->count++] = what;
}

static void first(void *log)
{
    note(log, '1');
}

static void second(void *log)
{
    note(log, '2');
}

static void unlock(void *log)
{
    note(log, pthread_mutex_unlock(&mutex) == 0 ? 'u' : '?');
}

static void destroy(void *log)
{
    note(log, 'k');
}

enum { COND, TIMED_COND, SEM, JOIN, READ, SLEEP, POLL, TEST, BUSY, SELF, LATE, WAYS };

static void wait_for_condition(struct log *log, int timed)
{
    struct timespec far;
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 1000;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, log);
    for (;;)
        if (timed)
            pthread_cond_timedwait(&never, &mutex, &far);
        else
            pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(0);
}

static void wait_in(int index, struct log *log)
{
    int way = index % WAYS;
    int ends[2];
    EXPECT(0, pipe(ends));
    struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
    struct timespec far = {1000, 0};
    char byte;
    int before;
    switch (way) {
    case COND:
    case TIMED_COND:
        wait_for_condition(log, way == TIMED_COND);
        break;
    case SEM:
        sem_wait(&none);
        break;
    case JOIN:
        pthread_join(sleepers[index], NULL);
        break;
    case READ:
        while (read(ends[0], &byte, 1) < 0)
            ;
        break;
    case SLEEP:
        nanosleep(&far, NULL);
        break;
    case POLL:
        poll(&descriptor, 1, -1);
        break;
    case TEST:
        for (;;)
            pthread_testcancel();
        break;
    case BUSY:
        EXPECT(0, pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before));
        EXPECT(PTHREAD_CANCEL_DEFERRED, before);
        for (volatile long i = 0;; i++)
            ;
        break;
    case SELF:
        EXPECT(0, pthread_cancel(pthread_self()));
        pthread_testcancel();
        break;
    case LATE:
        /* Not in a cancellation point, and then not while it is disabled. */
        EXPECT(0, pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before));
        EXPECT(PTHREAD_CANCEL_ENABLE, before);
        sem_wait(&late);
        usleep(1000);
        pthread_testcancel();
        note(log, 'd');
        EXPECT(0, pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
        pthread_mutex_lock(&mutex);
        note(log, 'm');
        pthread_mutex_unlock(&mutex);
        sleep(1000);
        break;
    }
    note(log, '!');
}

static void *work(void *number)
{
    int index = (int)(intptr_t)number;
    struct log *log = &logs[index];
    pthread_setspecific(key, log);
    pthread_cleanup_push(first, log);
    pthread_cleanup_push(second, log);
    sem_post(&ready);
    wait_in(index, log);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static pthread_t ids[MAX_THREADS];
static int count;

static void *cancel_all(void *nothing)
{
    for (int i = 0; i < count; i++)
        if (i % WAYS != SELF)
            EXPECT(0, pthread_cancel(ids[i]));
    return nothing;
}

static void *sleep_long(void *nothing)
{
    sleep(1000);
    return nothing;
}

int main(int argc, char **argv)
{
    static const char *const expected[WAYS] = {"u21k", "u21k", "21k", "21k", "21k", "21k", "21k", "21k", "21k", "21k", "dm21k"};
    parse(argc, argv, 1, 3);
    count = threads * WAYS;
    EXPECT(0, sem_init(&none, 0, 0) | sem_init(&late, 0, 0) | sem_init(&ready, 0, 0) | pthread_key_create(&key, destroy));
    for (int round = 0; round < iterations; round++) {
        memset(logs, 0, sizeof logs);
        for (int i = JOIN; i < count; i += WAYS)
            EXPECT(0, pthread_create(&sleepers[i], NULL, sleep_long, NULL));
        for (int i = 0; i < count; i++)
            EXPECT(0, pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
        for (int i = 0; i < count; i++)
            EXPECT(0, sem_wait(&ready));
        /* In each other round all wait by then, perhaps. */
        if (round % 2 == 0)
            usleep(20000);
        pthread_t canceller;
        EXPECT(0, pthread_create(&canceller, NULL, cancel_all, NULL));
        EXPECT(0, pthread_join(canceller, NULL));
        for (int i = 0; i < count; i++)
            if (i % WAYS == LATE)
                EXPECT(0, sem_post(&late));
        for (int i = 0; i < count; i++) {
            void *result = NULL;
            EXPECT(0, pthread_join(ids[i], &result));
            if (strcmp(logs[i].what, expected[i % WAYS]) != 0 || result != PTHREAD_CANCELED)
                fail("way %d: %s, %p", i % WAYS, logs[i].what, result);
        }
        for (int i = JOIN; i < count; i += WAYS) {
            void *result = NULL;
            EXPECT(0, pthread_cancel(sleepers[i]));
            EXPECT(0, pthread_join(sleepers[i], &result));
            EXPECT(1, result == PTHREAD_CANCELED);
        }
        EXPECT(0, pthread_mutex_trylock(&mutex));
        EXPECT(0, pthread_mutex_unlock(&mutex));
    }
    return pass();
}
