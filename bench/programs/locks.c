/* Mutexes without contention. A pair is a lock and the unlock that follows it.
 *
 * "lock-again": a pair of the same mutex, over and over. "lock-many": a million pairs over 1,000 mutexes that main has used
 * before and nobody else uses meanwhile. "lock-hand-over": a lock that the other node had last. */
#include "measure.h"

enum { AGAIN = 200000, AGAIN_BATCHES = 5, MUTEXES = 1000, PAIRS = 1000000, ROUNDS = 5 };

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t many[MUTEXES];
static struct samples again;

/* Nanoseconds for `count` pairs. */
static int64_t pairs(pthread_mutex_t *mutexes, long modulus, long count)
{
    int64_t start = now();
    for (long i = 0; i < count; i++) {
        pthread_mutex_t *mutex = &mutexes[i % modulus];
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    return now() - start;
}

/* Takes every mutex once; each is where the other thread left it. */
static void take_over(struct samples *to)
{
    for (long i = 0; i < MUTEXES; i++) {
        int64_t start = now();
        pthread_mutex_lock(&many[i]);
        if (to)
            add_sample(to, now() - start);
        pthread_mutex_unlock(&many[i]);
    }
}

static void first(void)
{
    for (int i = 0; i < AGAIN_BATCHES; i++)
        add_sample(&again, pairs(&one, 1, AGAIN) / AGAIN);
    pairs(many, MUTEXES, PAIRS);
    meet();
    meet(); /* the other thread's pairs */
    for (int round = 0; round < ROUNDS; round++) {
        take_over(NULL);
        meet();
        meet();
    }
    print_samples(&again);
}

static void *second(void *unused)
{
    struct samples here = new_samples("lock-many", 1);
    struct samples hand_over = new_samples("lock-hand-over", MUTEXES * ROUNDS);
    meet();
    add_sample(&here, pairs(many, MUTEXES, PAIRS));
    meet();
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        take_over(&hand_over);
        meet();
    }
    print_samples(&here);
    print_samples(&hand_over);
    return unused;
}

int main(void)
{
    for (int i = 0; i < MUTEXES; i++)
        must(pthread_mutex_init(&many[i], NULL), "pthread_mutex_init");
    again = new_samples("lock-again", AGAIN_BATCHES);
    run_pair(first, second);
    return 0;
}
