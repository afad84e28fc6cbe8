/* Double-checked locking by an acquire load and a release store, which are plain moves: who finds a thing made has called nothing that
 * could tell it what the maker has written. Nothing but the second look tells that the program needs sequential consistency. */
#include "../harness.h"
#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 400, WORDS = PAGE / sizeof(long) };

static struct thing {
    _Alignas(PAGE) long words[WORDS];
} things[MOST];
static struct {
    _Alignas(PAGE) struct thing *_Atomic made;
} places[MOST];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static struct thing *get(long i)
{
    struct thing *thing = atomic_load_explicit(&places[i].made, memory_order_acquire);
    if (!thing) {
        pthread_mutex_lock(&mutex);
        thing = atomic_load_explicit(&places[i].made, memory_order_relaxed);
        if (!thing) {
            thing = &things[i];
            for (size_t k = 0; k < WORDS; k++)
                thing->words[k] = i + 1;
            atomic_store_explicit(&places[i].made, thing, memory_order_release);
        }
        pthread_mutex_unlock(&mutex);
    }
    return thing;
}

static long work(int self)
{
    long violations = 0;
    /* Nodes have copies of what is not made yet, and none of the pointers. */
    for (long i = 0; i < iterations; i++)
        violations += things[i].words[self % WORDS] != 0;
    pthread_barrier_wait(&barrier);
    /* So that the others mostly find things made; the result does not depend on it. */
    if (self != 0)
        usleep(20000);
    for (long i = 0; i < iterations; i++) {
        struct thing *thing = get(i);
        for (size_t k = 0; k < WORDS; k++)
            violations += thing->words[k] != i + 1;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 100);
    if (iterations > MOST)
        iterations = MOST;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    return verdict(run_threads(threads, work), "a thing was found made and was not");
}
