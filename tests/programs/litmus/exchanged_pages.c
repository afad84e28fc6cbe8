/* Pages of which every thread writes parts between barriers: now a few bytes, now most of its share, now a value that it sets back,
   now nothing, and counters under a lock beside them. After each barrier everybody sees what everybody wrote. */
#include "../harness.h"

enum { PAGES = 4, LINE = 64 };

/* Byte `at` of a page belongs to thread `at` modulo the number of threads. The last line is the counters'. */
static unsigned char pages[PAGES][PAGE] __attribute__((aligned(4096)));
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static unsigned random_of(unsigned thread, unsigned round, unsigned page)
{
    unsigned seed = thread * 2654435761u + round * 40503u + page * 97u + 1;
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^ seed << 5;
}

/* How many bytes of its share a thread writes in a round. */
static int bytes_of(unsigned chance)
{
    switch (chance % 8) {
    case 0:
        return 0;
    case 1:
    case 2:
        return PAGE;
    default:
        return (int)(chance / 8 % 40);
    }
}

/* What a byte is after a round, given what it was. */
static unsigned char value_of(int at, unsigned round, unsigned char old, int thread, int page)
{
    int place = at / threads;
    return place < bytes_of(random_of((unsigned)thread, round, (unsigned)page)) ? (unsigned char)(round + (unsigned)place) : old;
}

static long work(int self)
{
    static __thread unsigned char expected[PAGES][PAGE];
    long violations = 0;
    for (int round = 1; round <= iterations; round++) {
        for (int page = 0; page < PAGES; page++) {
            for (int at = self; at < PAGE - LINE; at += threads) {
                unsigned char old = pages[page][at];
                unsigned char new = value_of(at, (unsigned)round, old, self, page);
                /* Others may copy the page while it has another value. */
                if (new != old || at % 512 == self)
                    *(volatile unsigned char *)&pages[page][at] = (unsigned char)~new;
                if (new != old || at % 512 == self)
                    *(volatile unsigned char *)&pages[page][at] = new;
            }
        }
        if (round % 3 == 0) {
            pthread_mutex_lock(&mutex);
            ++*(long *)&pages[round % PAGES][PAGE - LINE];
            pthread_mutex_unlock(&mutex);
        }
        pthread_barrier_wait(&barrier);
        for (int page = 0; page < PAGES; page++)
            for (int at = 0; at < PAGE - LINE; at++) {
                unsigned char *byte = &expected[page][at];
                *byte = value_of(at, (unsigned)round, *byte, at % threads, page);
                violations += pages[page][at] != *byte;
            }
        /* Else writes of the next round are not ordered with these reads. */
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 60);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work), counted = 0;
    for (int page = 0; page < PAGES; page++)
        counted += *(long *)&pages[page][PAGE - LINE];
    EXPECT(iterations / 3 * threads, counted);
    return verdict(violations, "a byte was not as it was written");
}
