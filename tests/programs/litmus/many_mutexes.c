/* Very many small mutexes, each beside its counter, taken at random. */
#include "../harness.h"

enum { LOCKS = 20000 };
static struct cell {
    pthread_mutex_t mutex;
    int count;
} *cells;
static long taken[MAX_THREADS];

static long work(int self)
{
    uint32_t state = (uint32_t)self * 31 + 5;
    for (long i = 0; i < iterations; i++) {
        struct cell *c = &cells[next_random(&state) % LOCKS];
        pthread_mutex_lock(&c->mutex);
        c->count++;
        pthread_mutex_unlock(&c->mutex);
        taken[self]++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 2000);
    cells = malloc(LOCKS * sizeof *cells);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT(0, pthread_mutex_init(&cells[i].mutex, NULL));
        cells[i].count = 0;
    }
    run_threads(threads, work);
    long total = 0;
    for (int i = 0; i < LOCKS; i++)
        total += cells[i].count;
    return verdict(threads * iterations - total, "an increment was lost");
}
