/* Threads that wait for each other by plain loads and stores alone (atomics with release and acquire, compiled without a single atomic
 * instruction), in all the ways in which programs do that. Nothing here but the loops tells that the program needs sequential
 * consistency. */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 16, WORDS = PAGE / sizeof(long) };

/* What is passed on is on other pages than the flags. */
static struct {
    _Alignas(PAGE) atomic_long turn;
    _Alignas(PAGE) long data[2][WORDS];
    _Alignas(PAGE) atomic_long head, tail;
    _Alignas(PAGE) long items[SLOTS][64];
    _Alignas(PAGE) atomic_long ready[2];
    _Alignas(PAGE) atomic_int stop;
    _Alignas(PAGE) long scratch[WORDS];
} common;

static long turn(void)
{
    return atomic_load_explicit(&common.turn, memory_order_acquire);
}

__attribute__((noinline)) static bool is_my_turn(long round)
{
    return turn() == round;
}

static void wait_tight(long round)
{
    while (turn() != round)
        ;
}

static void wait_yielding(long round)
{
    while (turn() != round)
        sched_yield();
}

static void wait_pausing(long round)
{
    while (turn() < round)
        __builtin_ia32_pause();
}

static void wait_sleeping(long round)
{
    do
        usleep(1);
    while (turn() != round);
}

static void wait_calling(long round)
{
    while (!is_my_turn(round))
        sched_yield();
}

static void wait_volatile(long round)
{
    while (*(volatile long *)&common.turn != round)
        sched_yield();
}

static void wait_with_tries(long round)
{
    for (;;) {
        for (int tries = 0; tries < 1000; tries++)
            if (turn() == round)
                return;
        sched_yield();
    }
}

static void wait_with_deadline(long round)
{
    time_t end = time(NULL) + 100;
    while (turn() != round && time(NULL) < end)
        sched_yield();
}

static void wait_working(long round)
{
    for (long i = 0; turn() != round; i++) {
        common.scratch[i % WORDS]++;
        sched_yield();
    }
}

static void (*const ways[])(long) = {wait_tight,    wait_yielding,   wait_pausing,       wait_sleeping, wait_calling,
                                     wait_volatile, wait_with_tries, wait_with_deadline, wait_working};
enum { WAYS = sizeof ways / sizeof *ways };

/* Each thread has its turn, and sees what those before it have written. */
static long take_turns(int self)
{
    long violations = 0;
    for (long round = self; round < iterations; round += threads) {
        ways[round % WAYS](round);
        violations += common.data[0][0] != round || common.data[1][7] != round;
        common.data[0][0] = common.data[1][7] = round + 1;
        atomic_store_explicit(&common.turn, round + 1, memory_order_release);
    }
    return violations;
}

/* A queue with one producer and one consumer. */
static long pass_items(int self)
{
    long violations = 0;
    for (long i = 0; i < iterations && self < 2; i++) {
        if (self == 0) {
            while (i - atomic_load_explicit(&common.head, memory_order_acquire) == SLOTS)
                sched_yield();
            for (int k = 0; k < 64; k++)
                common.items[i % SLOTS][k] = i * k;
            atomic_store_explicit(&common.tail, i + 1, memory_order_release);
        } else {
            while (atomic_load_explicit(&common.tail, memory_order_acquire) == i)
                sched_yield();
            for (int k = 0; k < 64; k++)
                violations += common.items[i % SLOTS][k] != i * k;
            atomic_store_explicit(&common.head, i + 1, memory_order_release);
        }
    }
    return violations;
}

/* Both flags must be there; and a thread that works until it is told to stop, with a lock now and then. */
static long stop_others(int self)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static long done;
    if (self < 2)
        atomic_store_explicit(&common.ready[self], 1, memory_order_release);
    if (self > 0) {
        while (!atomic_load_explicit(&common.stop, memory_order_relaxed)) {
            pthread_mutex_lock(&mutex);
            done++;
            pthread_mutex_unlock(&mutex);
        }
        return 0;
    }
    bool all;
    do {
        all = true;
        for (int i = 0; i < 2 && i < threads; i++)
            all &= atomic_load_explicit(&common.ready[i], memory_order_acquire) == 1;
    } while (!all);
    atomic_store_explicit(&common.stop, 1, memory_order_relaxed);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 100);
    long violations = run_threads(threads, take_turns);
    if (threads > 1)
        violations += run_threads(threads, pass_items);
    violations += run_threads(threads, stop_others);
    return verdict(violations, "old data after the flag");
}
