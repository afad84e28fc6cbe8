/* Futexes by number: a condition that moves its waiters to its mutex, words that are changed with a wake-up, and locks that lend priority. */
#include "../harness.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef _Atomic(uint32_t) word;

static long futex(word *address, int operation, uint32_t value, uintptr_t time, word *second, uint32_t third)
{
    return syscall(SYS_futex, address, operation, value, time, second, third);
}

/* 0: free, 1: held, 2: held, and others may wait. */
static void lock(word *mutex, uint32_t held)
{
    uint32_t before = 0;
    if (held == 1 && atomic_compare_exchange_strong(mutex, &before, 1))
        return;
    while (atomic_exchange(mutex, 2) != 0)
        futex(mutex, FUTEX_WAIT, 2, 0, NULL, 0);
}

static void unlock(word *mutex)
{
    if (atomic_exchange(mutex, 0) == 2)
        futex(mutex, FUTEX_WAKE, 1, 0, NULL, 0);
}

static word mutex, changes;
static long round_of_all, arrived;

/* A barrier: the last one wakes one of the others, and moves the rest to the mutex. */
static void meet(void)
{
    lock(&mutex, 1);
    long round = round_of_all;
    if (++arrived == threads) {
        arrived = 0;
        round_of_all++;
        uint32_t seen = atomic_fetch_add(&changes, 1) + 1;
        errno = 0;
        REQUIRE(futex(&changes, FUTEX_CMP_REQUEUE, 1, INT32_MAX, &mutex, seen + 1) == -1 && errno == EAGAIN);
        REQUIRE(futex(&changes, FUTEX_CMP_REQUEUE, 1, INT32_MAX, &mutex, seen) >= 0);
    }
    while (round == round_of_all) {
        uint32_t seen = changes;
        unlock(&mutex);
        futex(&changes, FUTEX_WAIT, seen, 0, NULL, 0);
        lock(&mutex, 2);
    }
    unlock(&mutex);
}

static word tokens, waiting;

/* A semaphore of which a give is one call: a token is added to one word, and who waits at the other one is woken if there was none. */
static void give(void)
{
    atomic_fetch_add(&waiting, 1);
    uint32_t add = FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_GE, 0);
    REQUIRE(futex(&waiting, FUTEX_WAKE_OP, 0, INT32_MAX, &tokens, add) >= 0);
}

static void take(void)
{
    for (;;) {
        uint32_t found = tokens;
        if (found == 0)
            futex(&tokens, FUTEX_WAIT, 0, 0, NULL, 0);
        else if (atomic_compare_exchange_strong(&tokens, &found, found - 1))
            return;
    }
}

static word priority;
static long count;

static void lock_pi(void)
{
    uint32_t before = 0;
    if (!atomic_compare_exchange_strong(&priority, &before, (uint32_t)gettid()))
        EXPECT(0, (int)futex(&priority, FUTEX_LOCK_PI, 0, 0, NULL, 0));
    EXPECT(gettid(), (int)(priority & FUTEX_TID_MASK));
}

static void unlock_pi(void)
{
    uint32_t before = (uint32_t)gettid();
    if (!atomic_compare_exchange_strong(&priority, &before, 0))
        EXPECT(0, (int)futex(&priority, FUTEX_UNLOCK_PI, 0, 0, NULL, 0));
}

static int error_of(long result)
{
    return result == -1 ? errno : 0;
}

static long work(int self)
{
    long violations = 0;
    for (int i = 0; i < iterations; i++) {
        lock_pi();
        count++;
        unlock_pi();
        meet();
        violations += count != (i + 1) * threads;
        if (self == 0)
            for (int k = 1; k < threads; k++)
                give();
        else
            take();
        meet();
    }
    if (self == 0) {
        lock_pi();
        violations += error_of(futex(&priority, FUTEX_LOCK_PI, 0, 0, NULL, 0)) != EDEADLK;
    }
    meet();
    if (self == 1) {
        struct timespec past = {1, 0};
        violations += error_of(futex(&priority, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0)) != EAGAIN;
        violations += error_of(futex(&priority, FUTEX_LOCK_PI, 0, (uintptr_t)&past, NULL, 0)) != ETIMEDOUT;
        violations += error_of(futex(&priority, FUTEX_UNLOCK_PI, 0, 0, NULL, 0)) != EPERM;
    }
    meet();
    if (self == 0)
        unlock_pi();
    meet();
    return violations + (tokens != 0);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 60);
    REQUIRE(threads > 1);
    return verdict(run_threads(threads, work), "a futex did something else");
}
