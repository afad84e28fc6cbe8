/* Misses on single pages whose home is the other node: a read, and the first write to a page that is present.
 *
 * "read-miss" and "write-miss": main waits at a barrier meanwhile. "busy-read-miss": main computes meanwhile, without
 * a call of any kind. */
#include "measure.h"

enum { PAGES = 1024, ROUNDS = 3, BUSY_PAGES = 256 };

static const int64_t BUSY_NS = 1500000000;
static char *pages;
static char *busy_pages;
static volatile double computed;

static void compute_for(int64_t nanoseconds)
{
    int64_t end = now() + nanoseconds;
    double x = 1.0;
    while (now() < end)
        for (int i = 0; i < 1000000; i++)
            x = x * 0.999999 + 1e-6;
    computed = x;
}

static void home(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < PAGES; i++)
            pages[i * PAGE] = (char)(round + 1);
        meet();
        meet(); /* the other thread reads */
        meet(); /* and writes */
    }
    for (long i = 0; i < BUSY_PAGES; i++)
        busy_pages[i * PAGE] = 1;
    meet();
    compute_for(BUSY_NS);
    meet();
}

/* Time of one access; the byte read must be `expected`. */
static int64_t timed_read(const volatile char *byte, char expected)
{
    int64_t start = now();
    char got = *byte;
    int64_t took = now() - start;
    must(got != expected, "stale data");
    return took;
}

static void *remote(void *unused)
{
    struct samples reads = new_samples("read-miss", PAGES * ROUNDS);
    struct samples writes = new_samples("write-miss", PAGES * ROUNDS);
    struct samples busy = new_samples("busy-read-miss", BUSY_PAGES);
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        for (long i = 0; i < PAGES; i++)
            add_sample(&reads, timed_read(&pages[scattered(i, PAGES) * PAGE], (char)(round + 1)));
        meet();
        for (long i = 0; i < PAGES; i++) {
            volatile char *byte = &pages[scattered(i, PAGES) * PAGE + 1];
            int64_t start = now();
            *byte = 1;
            add_sample(&writes, now() - start);
        }
        meet();
    }
    meet();
    int64_t end = now() + BUSY_NS / 2;
    for (long i = 0; i < BUSY_PAGES && now() < end; i++)
        add_sample(&busy, timed_read(&busy_pages[scattered(i, BUSY_PAGES) * PAGE], 1));
    meet();
    print_samples(&reads);
    print_samples(&writes);
    print_samples(&busy);
    return unused;
}

int main(void)
{
    pages = new_pages(PAGES);
    busy_pages = new_pages(BUSY_PAGES);
    run_pair(home, remote);
    return 0;
}
