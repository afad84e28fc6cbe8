/* Pages that two threads write and read by turns.
 *
 * "sharing-hand-over": a thread unlocks a mutex that the other one waits for and that guards 64 bytes; the other one reads them, writes
 * 64 bytes, and unlocks a mutex that the first one waits for. One value is half of that, on average over a batch.
 * "sharing-barrier": a barrier after which each thread reads a word of 16 pages that the other one has written. "sharing-words": both
 * threads write every other word of 256 pages, and meet. One value of these two is the time for one page. */
#include "measure.h"

#include <string.h>

enum { BATCH = 100, BATCHES = 10, HAND_OVERS = BATCH * BATCHES, READ = 16, SHARED = 256, ROUNDS = 40 };

struct side {
    pthread_mutex_t mutexes[HAND_OVERS]; /* locked by this side before */
    char *written;                       /* its 64 bytes, on the page of the other side's */
    char *pages;                         /* that it writes before a barrier */
};

static struct side sides[2];
static char *shared;

static void lock_all(struct side *own)
{
    for (int i = 0; i < HAND_OVERS; i++) {
        must(pthread_mutex_init(&own->mutexes[i], NULL), "pthread_mutex_init");
        pthread_mutex_lock(&own->mutexes[i]);
    }
    meet();
}

static void give(struct side *own, int number)
{
    memset(own->written, number + 1, 64);
    pthread_mutex_unlock(&own->mutexes[number]);
}

static void take(struct side *other, int number)
{
    pthread_mutex_lock(&other->mutexes[number]);
    for (int i = 0; i < 64; i++)
        must(other->written[i] != (char)(number + 1), "64 bytes of the other thread");
}

static void exchange(struct side *own, struct side *other, int round)
{
    for (int i = 0; i < READ; i++)
        *(int *)(own->pages + i * PAGE) = round;
    meet();
    for (int i = 0; i < READ; i++)
        must(*(int *)(other->pages + i * PAGE) != round, "a page of the other thread");
}

/* Writes every other word of the shared pages, from the first or the second one on. */
static void write_between(int self, int round)
{
    for (long page = 0; page < SHARED; page++) {
        volatile int *words = (volatile int *)(shared + page * PAGE);
        for (int i = self; i < PAGE / 4; i += 2)
            words[i] = round + i;
    }
    meet();
}

static void first(void)
{
    lock_all(&sides[0]);
    for (int i = 0; i < HAND_OVERS; i++) {
        give(&sides[0], i);
        take(&sides[1], i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        exchange(&sides[0], &sides[1], round);
    }
    for (int round = 0; round < ROUNDS; round++)
        write_between(0, round);
}

static void *second(void *unused)
{
    struct samples hand_over = new_samples("sharing-hand-over", BATCHES);
    struct samples barrier = new_samples("sharing-barrier", ROUNDS);
    struct samples sharing = new_samples("sharing-words", ROUNDS);
    lock_all(&sides[1]);
    for (int batch = 0; batch < BATCHES; batch++) {
        int64_t start = now();
        for (int i = 0; i < BATCH; i++) {
            take(&sides[0], batch * BATCH + i);
            give(&sides[1], batch * BATCH + i);
        }
        add_sample(&hand_over, (now() - start) / (2 * BATCH));
    }
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        int64_t start = now();
        exchange(&sides[1], &sides[0], round);
        add_sample(&barrier, (now() - start) / READ);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = now();
        write_between(1, round);
        add_sample(&sharing, (now() - start) / SHARED);
    }
    print_samples(&hand_over);
    print_samples(&barrier);
    print_samples(&sharing);
    return unused;
}

int main(void)
{
    char *both = new_pages(1);
    for (int i = 0; i < 2; i++) {
        sides[i].written = both + i * PAGE / 2;
        sides[i].pages = new_pages(READ);
    }
    shared = new_pages(SHARED);
    run_pair(first, second);
    return 0;
}
