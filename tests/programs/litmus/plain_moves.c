/* Threads that synchronise by acquire loads and release stores only, which are plain moves, in functions that are called by pointer and between other
 * work: nothing tells what they are for. Each finds what was written before the store that it sees. */
#include "../harness.h"
#include <sched.h>
#include <stdatomic.h>

enum { SLOTS = 64, WORDS = PAGE / sizeof(long) };

typedef struct {
    _Alignas(PAGE) atomic_long value;
} Flag;

static long look_at(Flag *flag) { return atomic_load_explicit(&flag->value, memory_order_acquire); }
static void set_to(Flag *flag, long value) { atomic_store_explicit(&flag->value, value, memory_order_release); }
static long (*volatile look)(Flag *) = look_at;
static void (*volatile set)(Flag *, long) = set_to;

static struct {
    _Alignas(PAGE) long words[WORDS];
} data[4], slots[SLOTS];
static Flag flags[4], taken, over;
static pthread_barrier_t barrier;

/* Waits for a flag, and works meanwhile. */
static long wait_for(Flag *flag, long least)
{
    unsigned long work = 1;
    for (long tries = 1;; tries++) {
        long value = look(flag);
        if (value >= least)
            return value;
        for (int i = 0; i < 100; i++)
            work = work * 6364136223846793005ul + 1;
        if (tries % 1000 == (long)(work >> 62))
            sched_yield();
    }
}

/* A thread after the other writes on all pages of data, then its own flag. */
static long chain(int self, long round)
{
    long violations = 0, before = round * threads + self;
    if (self == 0 && round > 0)
        wait_for(&flags[threads - 1], round);
    if (self > 0)
        wait_for(&flags[self - 1], round + 1);
    for (int i = 0; i < 4; i++) {
        long *words = data[i].words;
        violations += words[0] != before || words[WORDS - 1] != before;
        words[0] = words[WORDS - 1] = before + 1;
    }
    set(&flags[self], round + 1);
    return violations;
}

/* A queue from the first thread to the second one. */
static long produce(long items)
{
    for (long i = 0; i < items; i++) {
        if (i >= SLOTS)
            wait_for(&taken, i - SLOTS + 1);
        slots[i % SLOTS].words[i % WORDS] = i + 1;
        set(&flags[0], i + 1);
    }
    return 0;
}

static long consume(long items)
{
    long violations = 0;
    for (long i = 0; i < items;) {
        long there = wait_for(&flags[0], i + 1);
        for (; i < there; i++)
            violations += slots[i % SLOTS].words[i % WORDS] != i + 1;
        set(&taken, i);
    }
    return violations;
}

/* The others work until they are told to stop. */
static long watch(void)
{
    wait_for(&over, 1);
    return data[3].words[1] != 42;
}

static long work(int self)
{
    long violations = 0;
    for (int i = 0; i < 4; i++)
        violations += data[i].words[0] != 0;
    pthread_barrier_wait(&barrier);
    for (long round = 0; round < iterations; round++)
        violations += chain(self, round);
    pthread_barrier_wait(&barrier);
    if (self == 0)
        set(&flags[0], 0);
    pthread_barrier_wait(&barrier);
    if (self > 1)
        return violations + watch();
    violations += self == 0 ? produce(20 * iterations) : consume(20 * iterations);
    if (self == 0) {
        data[3].words[1] = 42;
        set(&over, 1);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    REQUIRE(threads >= 2 && threads <= 4);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "something older than the flag");
}
