/* Causality through third threads: each thread hears from its left neighbour under that neighbour's lock and speaks
 * to its right neighbour under its own. The last one must see what every thread wrote, without ever having taken
 * the same lock as most of them. */
#include "../harness.h"

static struct station {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long round;
} station[MAX_THREADS];
static long written[MAX_THREADS][PAGE / sizeof(long)]; /* a page for each thread, never written under a lock */
static long packed[MAX_THREADS];                       /* all in one page */

static void announce(struct station *s, long round)
{
    pthread_mutex_lock(&s->mutex);
    s->round = round;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void hear(struct station *s, long round)
{
    pthread_mutex_lock(&s->mutex);
    while (s->round < round)
        pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

static long work(int self)
{
    long violations = 0;
    int left = (self + threads - 1) % threads;
    for (long round = 1; round <= iterations; round++) {
        hear(&station[left], self == 0 ? round - 1 : round);
        for (int i = 0; i < threads; i++) {
            long expected = i < self ? round : round - 1;
            violations += written[i][self] != expected || packed[i] != expected;
        }
        for (int i = 0; i < threads; i++)
            written[self][i] = round;
        packed[self] = round;
        announce(&station[self], round);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 300);
    for (int i = 0; i < threads; i++) {
        EXPECT(0, pthread_mutex_init(&station[i].mutex, NULL));
        EXPECT(0, pthread_cond_init(&station[i].changed, NULL));
    }
    return verdict(run_threads(threads, work), "a write that happened before was not seen");
}
