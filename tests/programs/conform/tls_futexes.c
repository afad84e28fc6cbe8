/* A lock and a latch by futex calls whose words are thread-local variables of one thread: threads of other nodes wait at them, and wake each other
 * while each look at a word is an access to that thread's memory. */
#include "../harness.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 6 };

static __thread struct {
    int lock;
    int done;
    long count;
} own;

static __typeof__(own) *shared;
static pthread_barrier_t barrier;

static void wait_while(int *word, int value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(int *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* 0 is free, 1 locked, 2 locked with somebody waiting. */
static void lock(int *word)
{
    int free = 0;
    if (__atomic_compare_exchange_n(word, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
        wait_while(word, 2);
}

static void unlock(int *word)
{
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        wake(word, 1);
}

static long work(int self)
{
    if (self == 0)
        shared = &own;
    pthread_barrier_wait(&barrier);
    if (self != 0) {
        for (long i = 0; i < iterations; i++) {
            lock(&shared->lock);
            shared->count++;
            if (i % 7 == 0)
                sched_yield();
            unlock(&shared->lock);
        }
        if (__atomic_add_fetch(&shared->done, 1, __ATOMIC_SEQ_CST) == THREADS - 1)
            wake(&shared->done, 1);
    } else {
        int done;
        while ((done = __atomic_load_n(&own.done, __ATOMIC_SEQ_CST)) != THREADS - 1)
            wait_while(&own.done, done);
        EXPECT((THREADS - 1) * iterations, own.count);
    }
    /* The variables are there as long as their thread. */
    pthread_barrier_wait(&barrier);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 300);
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(THREADS, work);
    return pass();
}
