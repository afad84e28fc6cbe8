/* Atomic instructions of all sizes: of 1 to 16 bytes, some of which lie across the end of a page, on pages that several threads change.
 *
 * Some hosts of virtual machines stop a processor for milliseconds whenever it locks bytes of two lines, so threads count what they do,
 * and stop after some seconds. */
#include "../harness.h"
#include <time.h>

#define MOST_SECONDS 4

static struct {
    _Alignas(PAGE) unsigned char bytes[2 * PAGE];
    _Alignas(PAGE) unsigned long pair[2];
} shared;

/* The last bytes of one page and the first of the next. */
#define ACROSS (shared.bytes + PAGE - 2)
/* The same of two lines. */
#define LINES (shared.bytes + 62)

static void add_across(unsigned char *at)
{
    __asm__ volatile("lock addl %1, %0" : "+m"(*(unsigned int *)at) : "r"(0x10001) : "memory");
}

/* Each thread's own are at the end of another page: neighbours need the page between them at the same time. */
static unsigned char chain[9 * PAGE] __attribute__((aligned(PAGE)));

static unsigned char *link_of(int self)
{
    return chain + (self % 8 + 1) * PAGE - 2;
}

/* Both halves change together, or neither: the second is always three times the first. */
static long next_pair(void)
{
    unsigned long low = shared.pair[0], high = shared.pair[1];
    bool done;
    do
        __asm__ volatile("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(shared.pair), "+a"(low), "+d"(high)
                         : "b"(low + 1), "c"(low * 3 + 3)
                         : "memory");
    while (!done);
    return high != low * 3;
}

static pthread_barrier_t start;
static long rounds[MAX_THREADS];

static time_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static long work(int self)
{
    long violations = 0, i;
    pthread_barrier_wait(&start);
    time_t end = seconds() + MOST_SECONDS;
    for (i = 0; i < iterations && seconds() < end; i++) {
        add_across(ACROSS);
        add_across(LINES);
        add_across(link_of(self));
        __atomic_fetch_add(&shared.bytes[8], 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add((unsigned short *)&shared.bytes[PAGE + 16], 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add((unsigned long *)&shared.bytes[16], 1, __ATOMIC_SEQ_CST);
        violations += next_pair();
    }
    rounds[self] = i;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 3000);
    EXPECT(0, pthread_barrier_init(&start, NULL, (unsigned)threads));
    long violations = run_threads(threads, work), all = 0;
    for (int i = 0; i < threads; i++)
        all += rounds[i];
    unsigned int across;
    unsigned short two;
    unsigned long eight;
    memcpy(&across, ACROSS, sizeof across);
    memcpy(&two, &shared.bytes[PAGE + 16], sizeof two);
    memcpy(&eight, &shared.bytes[16], sizeof eight);
    EXPECT((unsigned int)all * 0x10001, across);
    memcpy(&across, LINES, sizeof across);
    EXPECT((unsigned int)all * 0x10001, across);
    unsigned int links = 0;
    for (int i = 0; i < 8; i++) {
        memcpy(&across, link_of(i), sizeof across);
        links += across;
    }
    EXPECT((unsigned int)all * 0x10001, links);
    EXPECT(all & 0xff, shared.bytes[8]);
    EXPECT(all & 0xffff, two);
    EXPECT(all, eight);
    EXPECT(all, shared.pair[0]);
    return verdict(violations, "a half of 16 bytes was older than the other");
}
