/* Threads walk over an array of mutexes, forwards, backwards and with gaps, and change what each guards: all see the
 * last change, whoever the mutexes were taken from before they were wanted. Some only try. */
#include "../harness.h"

enum { CELLS = 700 };
static struct cell {
    pthread_mutex_t mutex;
    long count, twice;
    char between[200];
} cells[CELLS];
static const int strides[] = {1, -1, 2, 3, -2};
static long added[MAX_THREADS];

static long change(struct cell *c, int self)
{
    long wrong = c->twice != 2 * c->count;
    c->count++;
    c->twice += 2;
    pthread_mutex_unlock(&c->mutex);
    added[self]++;
    return wrong;
}

static long work(int self)
{
    long wrong = 0;
    for (long i = 0; i < iterations; i++) {
        bool tries = (self + i) % 4 == 0;
        int stride = strides[(unsigned long)(self + i) % 5];
        int at = (int)(self * CELLS / threads);
        for (int steps = 0; steps < CELLS / 2; steps++) {
            struct cell *c = &cells[at];
            if (!(tries ? pthread_mutex_trylock(&c->mutex) : pthread_mutex_lock(&c->mutex)))
                wrong += change(c, self);
            at = (at + stride + CELLS) % CELLS;
        }
    }
    return wrong;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    for (int i = 0; i < CELLS; i++)
        EXPECT(0, pthread_mutex_init(&cells[i].mutex, NULL));
    long wrong = run_threads(threads, work), total = 0, sum = 0;
    for (int i = 0; i < CELLS; i++)
        total += cells[i].count;
    for (int i = 0; i < threads; i++)
        sum += added[i];
    return verdict(wrong + labs(total - sum), "a change was missed");
}
