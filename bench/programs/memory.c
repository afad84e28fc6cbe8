/* Bandwidth and latency of memory, after BwMemCp, BwMemRd, BwMemWr and lat_mem_rd of the Hbench-OS and Lmbench suites.
 *
 * usage: memory copy|read|write|chase PAGES THREADS NODES HOME AT
 *
 * One thread of node HOME writes the memory, then THREADS threads of node AT work on it, each on PAGES pages of its own
 * that are in a row:
 *   copy    memcpy from one array to another
 *   read    adds up all 64-bit words, in order
 *   write   stores a 64-bit word in all of them, in order
 *   chase   goes from line to line, each of which says where the next one is. A pass is one line of each page; consecutive
 *           lines are on different pages, in an order that nobody foresees, and no line comes up again before all others
 *           have.
 * "first": the first pass of all threads and a barrier after it, which makes what was written known to all. "again": the
 * slowest thread's time of each of the passes after that, without a barrier between them. All in nanoseconds.
 *
 * Threads are expected on the nodes in turn, main on node 0; other places end the program. With NODES 1, whoever starts
 * the program says where it has its threads and memory, and the program says what it finds: "processor NUMBER" of each
 * thread, "pages NODE COUNT" as the kernel counts, nothing if it refuses to count. */
#include "measure.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64, LINES = PAGE / LINE, WORDS = PAGE / sizeof(uint64_t), PASSES = 9, MAX_KERNEL_NODES = 1024 };

struct kernel {
    const char *name;
    int arrays;
    void (*prepare)(void);      /* by the home */
    void (*warm_up)(long part); /* between the first pass and the others */
    void (*pass)(long part);
    void (*check)(long part); /* after all passes */
};

/* What a thread leaves, on a page of its own. */
struct thread {
    _Alignas(PAGE) int64_t first;
    int64_t again[PASSES];
    int processor;
    long process;
};

static const struct kernel *kernel;
static long pages, threads, nodes, home, at;
static char *array[2];
static struct thread *all; /* by the numbers of the threads */

/* The thread's own part of an array. */
static char *part_of(int which, long part)
{
    return array[which] + part * pages * PAGE;
}

/* Every word is its own number, counted in its array. */
static void number_words(void)
{
    uint64_t *words = (uint64_t *)array[0];
    for (long i = 0; i < threads * pages * (long)WORDS; i++)
        words[i] = (uint64_t)i;
}

static void copy_prepare(void)
{
    number_words();
    memset(array[1], 1, (size_t)(threads * pages * PAGE));
}

static void copy(long part)
{
    memcpy(part_of(1, part), part_of(0, part), (size_t)(pages * PAGE));
}

static void copy_check(long part)
{
    must(memcmp(part_of(1, part), part_of(0, part), (size_t)(pages * PAGE)), "wrong copy");
}

/* Loops go page by page: compilers make the best of a number of rounds that they know. */
static void read_all(long part)
{
    const uint64_t *words = (const uint64_t *)part_of(0, part);
    uint64_t sum = 0;
    for (long page = 0; page < pages; page++, words += WORDS)
        for (size_t i = 0; i < WORDS; i++)
            sum += words[i];
    uint64_t count = (uint64_t)pages * WORDS, start = (uint64_t)part * count;
    must(sum != count * start + count * (count - 1) / 2, "wrong sum");
}

static void write_value(long part, uint64_t value)
{
    uint64_t *words = (uint64_t *)part_of(0, part);
    for (long page = 0; page < pages; page++, words += WORDS)
        for (size_t i = 0; i < WORDS; i++)
            words[i] = value;
}

/* Another value each time: what does not change need not go to other nodes. */
static uint64_t next_value(void)
{
    static _Thread_local uint64_t value;
    return value += 0x0101010101010101;
}

static void write_all(long part)
{
    write_value(part, next_value());
}

static void write_check(long part)
{
    const uint64_t *words = (const uint64_t *)part_of(0, part);
    for (size_t i = 1; i < (size_t)pages * WORDS; i++)
        must(words[i] != words[0], "wrong words");
}

/* Where the thread is in its chain. */
static _Thread_local void **position;

/* Line number `index` of a chain. */
static void **line(char *start, const long *order, long index)
{
    long page = order[index % pages];
    return (void **)(start + page * PAGE + (index / pages + page) % LINES * LINE);
}

static void chase_prepare(void)
{
    long *order = malloc((size_t)pages * sizeof(long));
    must(order == NULL, "malloc");
    uint64_t random = 88172645463325252;
    for (long i = 0; i < pages; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        long other = (long)(random % (uint64_t)(i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    for (long part = 0; part < threads; part++) {
        char *start = part_of(0, part);
        void **here = line(start, order, 0);
        for (long i = 1; i <= pages * LINES; i++) {
            void **next = line(start, order, i % (pages * LINES));
            *here = next;
            here = next;
        }
    }
    free(order);
}

static void go(void **from, long steps)
{
    while (steps-- > 0)
        from = *from;
    position = from;
}

/* Where a chain begins does not matter: any `pages` lines in a row are on different pages. */
static void chase(long part)
{
    go(position ? position : (void **)part_of(0, part), pages);
}

/* The rest of the chain, after which caches hold none of the lines that come next if they are smaller than it. */
static void chase_warm_up(long part)
{
    go(position, pages * (LINES - 1));
    must(position != (void **)part_of(0, part), "wrong chain");
}

static void nothing(long part)
{
    (void)part;
}

static const struct kernel KERNELS[] = {
    {"copy", 2, copy_prepare, copy, copy, copy_check},
    {"read", 1, number_words, read_all, read_all, nothing},
    {"write", 1, number_words, write_all, write_all, write_check},
    {"chase", 1, chase_prepare, chase_warm_up, chase, nothing},
};

/* The time of one pass. What it reads and writes is memory that others may look at, so that no pass can be left out. */
static int64_t timed_pass(long part, int with_barrier)
{
    int64_t start = now();
    kernel->pass(part);
    __asm__ volatile("" ::: "memory");
    if (with_barrier)
        meet();
    return now() - start;
}

static void measure(struct thread *me, long part)
{
    int64_t again[PASSES];
    int64_t first = timed_pass(part, 1);
    kernel->warm_up(part);
    for (int i = 0; i < PASSES; i++)
        again[i] = timed_pass(part, 0);
    kernel->check(part);
    me->first = first;
    memcpy(me->again, again, sizeof again);
    me->processor = sched_getcpu();
}

static void *work(void *number)
{
    long node = (long)number % nodes, part = (long)number / nodes;
    struct thread *me = &all[(long)number];
    char name[32] = "";
    me->process = readlink("/proc/self", name, sizeof name - 1) > 0 ? atol(name) : 0;
    if (node == home && part == 0)
        kernel->prepare();
    meet();
    if (node == at)
        measure(me, part);
    else
        meet();
    meet();
    return NULL;
}

static void print_times(void)
{
    for (int i = -1; i < PASSES; i++) {
        int64_t slowest = 0;
        for (long part = 0; part < threads; part++) {
            const struct thread *worker = &all[part * nodes + at];
            int64_t time = i < 0 ? worker->first : worker->again[i];
            slowest = time > slowest ? time : slowest;
        }
        printf("%s %ld\n", i < 0 ? "first" : "again", (long)slowest);
    }
}

/* Each node of a run is a process. */
static void check_nodes(void)
{
    for (long i = 0; i < threads * nodes; i++)
        for (long j = 0; j < i; j++)
            must((all[i].process == all[j].process) != (i % nodes == j % nodes), "threads on unexpected nodes");
}

static void print_places(void)
{
    for (long part = 0; part < threads; part++)
        printf("processor %d\n", all[part].processor);
    static long counts[MAX_KERNEL_NODES];
    for (int which = 0; which < kernel->arrays; which++)
        for (long page = 0; page < threads * pages; page++) {
            void *address = array[which] + page * PAGE;
            int node = -1;
            if (syscall(SYS_move_pages, 0, 1L, &address, NULL, &node, 0) != 0)
                return;
            must(node < 0 || node >= MAX_KERNEL_NODES, "a page that was used is nowhere");
            counts[node]++;
        }
    for (int node = 0; node < MAX_KERNEL_NODES; node++)
        if (counts[node] > 0)
            printf("pages %d %ld\n", node, counts[node]);
}

int main(int count, char **arguments)
{
    must(count != 7, "arguments");
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (strcmp(arguments[1], KERNELS[i].name) == 0)
            kernel = &KERNELS[i];
    must(kernel == NULL, "kernel");
    pages = atol(arguments[2]), threads = atol(arguments[3]), nodes = atol(arguments[4]);
    home = atol(arguments[5]), at = atol(arguments[6]);
    must(pages < 1 || threads < 1 || nodes < 1 || home < 0 || home >= nodes || at < 0 || at >= nodes, "numbers");
    for (int which = 0; which < kernel->arrays; which++)
        array[which] = new_pages((size_t)(threads * pages));
    all = (struct thread *)new_pages((size_t)(threads * nodes) * sizeof(struct thread) / PAGE);
    run_all(threads * nodes, work);
    check_nodes();
    print_times();
    if (nodes == 1)
        print_places();
    return 0;
}
