/* Mean latencies of misses whose homes and owners are spread at random over a simulated machine.
 *
 * usage: random PROCESSORS NODE LINES STRIDE PAGE CACHE: a thread on each of so many processors, in nodes of NODE; for each case so
 * many lines, STRIDE bytes apart, in pages of PAGE bytes; no second cache has more than CACHE bytes.
 *
 * The first thread follows a chain of addresses, in which each load needs the last one's result, while the others wait. A line is at
 * home on the node of a random thread. It is either in memory only, or modified in the cache of another random thread. With *created
 * locality*, a part of the lines has both in the first thread's node. Prints one line for each case: its name and nanoseconds for a load.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long processors, node_size, lines, stride, page, cache;
static pthread_barrier_t barrier;

/* What a thread has of a chain: some of its lines, each with the next one. */
struct part {
    char **at, *next;
};

static struct test {
    const char *name;
    double caches;  /* the share of lines that are modified in a cache */
    double created; /* the share of lines that are local because something was done for it */
    int *home;      /* of each line, a thread */
    int *owner;     /* of each line, a thread, or NONE */
    char **line;
} tests[] = {
    {.name = "memory"},
    {.name = "caches", .caches = 1},
    {.name = "half", .caches = 0.5},
    {.name = "half, 25 % created", .caches = 0.5, .created = 0.25},
    {.name = "half, 50 % created", .caches = 0.5, .created = 0.5},
    {.name = "half, 75 % created", .caches = 0.5, .created = 0.75},
    {.name = "half, all created", .caches = 0.5, .created = 1},
};
enum { TESTS = sizeof tests / sizeof *tests, NONE = -1 };

static void *room_for(size_t bytes)
{
    void *memory = aligned_alloc((size_t)page, (bytes / (size_t)page + 1) * (size_t)page);
    if (!memory)
        exit(1);
    return memory;
}

static double random_part(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* One of the threads from `first` to before `end`. */
static int random_thread(long first, long end)
{
    return (int)(first + (long)(random_part() * (double)(end - first)));
}

static void choose(struct test *test)
{
    test->home = room_for(sizeof(int) * (size_t)lines);
    test->owner = room_for(sizeof(int) * (size_t)lines);
    test->line = room_for(sizeof(char *) * (size_t)lines);
    for (long i = 0; i < lines; i++) {
        long end = random_part() < test->created ? node_size : processors;
        test->home[i] = random_thread(0, end);
        test->owner[i] = random_part() < test->caches ? random_thread(1, end) : NONE;
    }
}

/* Gives the lines of which a thread is the home their memory, which it touches first. */
static void place(struct test *test, int self)
{
    char *next = NULL, *end = NULL;
    for (long i = 0; i < lines; i++)
        if (test->home[i] == self) {
            if (next == end) {
                next = room_for((size_t)page - 1);
                end = next + page / stride * stride;
            }
            *next = 0;
            test->line[i] = next;
            next += stride;
        }
}

/* Writes the lines for which `who` has a thread's number. Looking for them comes first: the cache would not keep what was written
 * meanwhile. */
static void link_lines(const struct test *test, const int *who, int self, struct part *part)
{
    long found = 0;
    for (long i = 0; i < lines; i++)
        if (who[i] == self) {
            part[found].at = (char **)test->line[i];
            part[found++].next = i + 1 < lines ? test->line[i + 1] : NULL;
        }
    for (long i = 0; i < found; i++)
        *part[i].at = part[i].next;
}

/* Has the cache of this thread's processor write all its lines back. */
static void flush(void)
{
    volatile char *other = room_for((size_t)cache * 2);
    for (long i = 0; i < cache * 2; i += 32)
        (void)other[i];
}

static double follow(const struct test *test)
{
    /* Until the others have come through the barrier, which keeps its home busy. */
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (char *volatile *at = (char *volatile *)test->line[0]; at; at = (char *volatile *)*at)
        ;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
}

static void *work(void *argument)
{
    int self = (int)(long)argument;
    struct part *part = room_for(sizeof *part * (size_t)lines);
    for (int number = 0; number < TESTS; number++)
        place(&tests[number], self);
    pthread_barrier_wait(&barrier);
    for (int number = 0; number < TESTS; number++)
        link_lines(&tests[number], tests[number].home, self, part);
    flush();
    pthread_barrier_wait(&barrier);
    for (int number = 0; number < TESTS; number++) {
        link_lines(&tests[number], tests[number].owner, self, part);
        pthread_barrier_wait(&barrier);
        if (self == 0)
            printf("%s: %.1f\n", tests[number].name, follow(&tests[number]) / (double)lines);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: random PROCESSORS NODE LINES STRIDE PAGE CACHE\n");
        return 2;
    }
    processors = atol(argv[1]);
    node_size = atol(argv[2]);
    lines = atol(argv[3]);
    stride = atol(argv[4]);
    page = atol(argv[5]);
    cache = atol(argv[6]);
    for (int number = 0; number < TESTS; number++)
        choose(&tests[number]);
    pthread_t *threads = room_for(sizeof *threads * (size_t)processors);
    pthread_barrier_init(&barrier, NULL, (unsigned)processors);
    for (long i = 1; i < processors; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    work(NULL);
    for (long i = 1; i < processors; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
