/* A search through a very uneven tree, by threads that steal from each other without locks.
 *
 * Each thread puts the nodes that it still has to visit into a queue with two ends, of which it uses one; who has
 * nothing left takes from the other end of another thread's: D. Chase and Y. Lev, "Dynamic circular work-stealing
 * deque" (2005), with a ring that does not grow. How many children a node has depends on a random number of its own,
 * as in trees of games. Thread 0 begins with all children of the root, the others with nothing.
 */
#include "common.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'r', "children of the root", 200, 50000, 1, 1000000, 0},
    {'d', "children of the others, if any", 6, 6, 1, 100, 0},
    {'q', "nodes that have children, of each thousand", 140, 166, 0, 1000, 0},
};
static struct app app = {"deque", "search of a tree with a work-stealing deque, C11 atomics", specs, 3, NULL, NULL};

enum { ROOM = 1 << 16, LINE = 128 };

/* A node is its random number. 0 is none. */
struct deque {
    _Alignas(LINE) _Atomic long top;    /* where thieves take */
    _Alignas(LINE) _Atomic long bottom; /* where the owner puts and takes */
    _Alignas(LINE) _Atomic uint64_t ring[ROOM];
};

static struct deque *deques;
static _Atomic int idle; /* threads that have nothing and make nothing */
static long root_children, children, likely;
static _Atomic uint64_t visited, leaves, sum;

static void put(struct deque *d, uint64_t node)
{
    long bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);
    if (bottom - atomic_load_explicit(&d->top, memory_order_acquire) >= ROOM)
        die("more than %d nodes wait", ROOM);
    atomic_store_explicit(&d->ring[bottom % ROOM], node, memory_order_relaxed);
    atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
}

/* The owner takes what it put last. For the very last one it runs against the thieves. */
static uint64_t take(struct deque *d)
{
    long bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;
    atomic_store(&d->bottom, bottom);
    long top = atomic_load(&d->top);
    uint64_t node = 0;
    if (top <= bottom)
        node = atomic_load_explicit(&d->ring[bottom % ROOM], memory_order_relaxed);
    if (top == bottom && !atomic_compare_exchange_strong(&d->top, &top, top + 1))
        node = 0;
    if (top >= bottom)
        atomic_store_explicit(&d->bottom, bottom + 1, memory_order_relaxed);
    return node;
}

static bool looks_empty(struct deque *d)
{
    return atomic_load(&d->top) >= atomic_load(&d->bottom);
}

static uint64_t steal(struct deque *d)
{
    long top = atomic_load(&d->top), bottom = atomic_load(&d->bottom);
    if (top >= bottom)
        return 0;
    uint64_t node = atomic_load_explicit(&d->ring[top % ROOM], memory_order_relaxed);
    return atomic_compare_exchange_strong(&d->top, &top, top + 1) ? node : 0;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) | 1;
}

struct tally {
    uint64_t visited, leaves, sum;
};

static long children_of(uint64_t node)
{
    return (long)(mix(node + 1) >> 20) % 1000 < likely ? children : 0;
}

static void visit(struct deque *d, uint64_t node, struct tally *t)
{
    long count = children_of(node);
    t->visited++;
    t->leaves += count == 0;
    t->sum += mix(node);
    for (long i = 0; i < count; i++)
        put(d, mix(node * 31 + (uint64_t)i));
}

/* Steals from the others until one has something; 0 when all threads look for something at the same time. */
static uint64_t look_around(int self)
{
    atomic_fetch_add(&idle, 1);
    while (atomic_load(&idle) < threads) {
        for (int i = 1; i < threads; i++) {
            struct deque *d = &deques[(self + i) % threads];
            if (looks_empty(d))
                continue;
            /* Not idle before it has something that may make more. */
            atomic_fetch_sub(&idle, 1);
            uint64_t node = steal(d);
            if (node)
                return node;
            atomic_fetch_add(&idle, 1);
        }
        sched_yield();
    }
    return 0;
}

static void work(int self)
{
    struct deque *own = &deques[self];
    struct tally t = {0, 0, 0};
    atomic_init(&own->top, 0);
    atomic_init(&own->bottom, 0);
    team_barrier();
    for (long i = 0; self == 0 && i < root_children; i++)
        put(own, mix((uint64_t)i * 2 + 12345));
    for (uint64_t node = 0;;) {
        while ((node = take(own)) != 0)
            visit(own, node, &t);
        node = look_around(self);
        if (node == 0)
            break;
        visit(own, node, &t);
    }
    atomic_fetch_add(&visited, t.visited);
    atomic_fetch_add(&leaves, t.leaves);
    atomic_fetch_add(&sum, t.sum);
}

/* The same by one thread with a stack. */
static void verify(void)
{
    enum { STACK = 1 << 20 };
    uint64_t *stack = must_alloc(sizeof *stack * STACK), count = 0, all = 0;
    for (long i = 0; i < root_children; i++) {
        long used = 0;
        stack[used++] = mix((uint64_t)i * 2 + 12345);
        while (used > 0) {
            uint64_t node = stack[--used];
            count++;
            all += mix(node);
            for (long k = 0; k < children_of(node) && used < STACK; k++)
                stack[used++] = mix(node * 31 + (uint64_t)k);
        }
    }
    free(stack);
    check(count == visited && all == sum, "a search by one thread finds the same nodes");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    root_children = specs[0].value;
    children = specs[1].value;
    likely = specs[2].value;
    if (children * likely >= 1000)
        die("-d %ld and -q %ld make a tree without an end: their product must be less than 1000", children, likely);
    deques = aligned_alloc(LINE, sizeof *deques * (size_t)threads);
    if (!deques)
        die("cannot allocate %d deques", threads);
    run_team(MAIN_WAITS, work);
    printf("result: deque %lu nodes, %lu leaves: %016lx\n", (unsigned long)visited, (unsigned long)leaves,
           (unsigned long)sum);
    if (self_check)
        verify();
    return 0;
}
