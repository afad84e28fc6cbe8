/* Shortest ways from one node of a random graph to all others, by delta stepping.
 *
 * Nodes wait in buckets by their distance, which is the same in a bucket up to delta. All threads work on the nodes
 * of the first bucket at the same time and shorten the ways to their neighbours by compare-and-swap; who has
 * shortened one puts the node into a bucket of its own. When the bucket is empty for all, they agree on the next
 * one: U. Meyer and P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm" (2003). The distances do
 * not depend on who comes first.
 */
#include "common.h"
#include "kronecker.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'g', "the graph has 2^N nodes", 8, 16, 2, 26, 0},
    {'k', "edges for each node", 8, 16, 1, 64, 0},
    {'d', "width of a bucket", 40, 40, 1, 100000, 0},
    {'i', "nodes to begin at, one after the other", 2, 4, 1, 1000, 0},
};
static struct app app = {"delta-stepping", "shortest ways with C11 atomics", specs, 4, NULL, NULL};

enum { FAR = INT_MAX };

/* A bucket of one thread. */
struct bucket {
    uint32_t *node;
    long used, room;
};

/* The buckets of one thread; those after the last one are empty. */
struct buckets {
    struct bucket *bucket;
    long count;
};

static struct graph graph;
static _Atomic int *distance;
static uint32_t *frontier;       /* nodes of the bucket that all threads work on */
static _Atomic long frontier_used, frontier_taken;
static _Atomic long next_bucket; /* the first one that is not empty in any thread */
static long width, sources;
static uint64_t result = HASH_START;

static void put(struct buckets *b, long number, uint32_t node)
{
    if (number >= b->count) {
        long count = 2 * number + 2;
        b->bucket = realloc(b->bucket, sizeof *b->bucket * (size_t)count);
        if (!b->bucket)
            die("out of memory for %ld buckets", count);
        for (; b->count < count; b->count++)
            b->bucket[b->count] = (struct bucket){NULL, 0, 0};
    }
    struct bucket *to = &b->bucket[number];
    if (to->used == to->room) {
        to->room = to->room ? 2 * to->room : 64;
        to->node = realloc(to->node, sizeof *to->node * (size_t)to->room);
        if (!to->node)
            die("out of memory for a bucket of %ld nodes", to->room);
    }
    to->node[to->used++] = node;
}

/* Shortens the ways to the neighbours of a node. */
static void relax(struct buckets *b, uint32_t node)
{
    int so_far = atomic_load(&distance[node]);
    for (long e = graph.start[node]; e < graph.start[node + 1]; e++) {
        uint32_t to = graph.to[e];
        int new = so_far + (int)edge_weight(node, to), old = atomic_load(&distance[to]);
        while (new < old)
            if (atomic_compare_exchange_weak(&distance[to], &old, new)) {
                put(b, new / width, to);
                break;
            }
    }
}

/* Works on the frontier, which is bucket `number`; nodes that were reached on a shorter way meanwhile are left out. */
static void work_on(struct buckets *b, long number)
{
    enum { AT_ONCE = 16 };
    long used = atomic_load(&frontier_used), at;
    while ((at = atomic_fetch_add(&frontier_taken, AT_ONCE)) < used)
        for (long i = at; i < at + AT_ONCE && i < used; i++)
            if (atomic_load(&distance[frontier[i]]) >= number * width)
                relax(b, frontier[i]);
}

static long first_used(const struct buckets *b, long from)
{
    while (from < b->count && b->bucket[from].used == 0)
        from++;
    return from < b->count ? from : LONG_MAX;
}

static void find_ways(int self, uint32_t source, struct buckets *b)
{
    if (self == 0) {
        atomic_store(&distance[source], 0);
        put(b, 0, source);
    }
    for (long number = 0; number != LONG_MAX;) {
        team_barrier();
        if (self == 0) {
            atomic_store(&next_bucket, LONG_MAX);
            atomic_store(&frontier_used, 0);
            atomic_store(&frontier_taken, 0);
        }
        team_barrier();
        long own = first_used(b, number), least = atomic_load(&next_bucket);
        while (own < least && !atomic_compare_exchange_weak(&next_bucket, &least, own))
            ;
        team_barrier();
        number = atomic_load(&next_bucket);
        if (number < b->count) {
            struct bucket *mine = &b->bucket[number];
            long to = atomic_fetch_add(&frontier_used, mine->used);
            for (long i = 0; i < mine->used; i++)
                frontier[to + i] = mine->node[i];
            mine->used = 0;
        }
        team_barrier();
        if (number != LONG_MAX)
            work_on(b, number);
    }
}

/* A node of the graph's greatest part. */
static uint32_t source_of(long number)
{
    struct random r = {(uint64_t)number * 2 + 7};
    random_bits(&r);
    uint32_t node = (uint32_t)(random_bits(&r) & (uint64_t)(graph.nodes - 1));
    while (graph.start[node + 1] - graph.start[node] < 4)
        node = (node + 1) & (uint32_t)(graph.nodes - 1);
    return node;
}

static void work(int self)
{
    struct buckets b = {NULL, 0};
    long first, last;
    my_block(graph.nodes, self, &first, &last);
    graph_build(&graph, self);
    for (long i = 0; i < sources; i++) {
        for (long node = first; node < last; node++)
            atomic_store_explicit(&distance[node], FAR, memory_order_relaxed);
        team_barrier();
        find_ways(self, source_of(i), &b);
        team_barrier();
        if (self == 0)
            for (long node = 0; node < graph.nodes; node++) {
                int value = atomic_load_explicit(&distance[node], memory_order_relaxed);
                result = hash_bytes(result, &value, sizeof value);
            }
        team_barrier();
    }
    for (long i = 0; i < b.count; i++)
        free(b.bucket[i].node);
    free(b.bucket);
}

/* No edge is a short cut, and each way has a last edge. */
static void verify(void)
{
    bool none_shorter = true, all_reached = true;
    uint32_t source = source_of(sources - 1);
    for (uint32_t node = 0; node < graph.nodes; node++) {
        long here = atomic_load(&distance[node]);
        bool reached = here == FAR || node == source;
        for (long e = graph.start[node]; e < graph.start[node + 1]; e++) {
            long there = atomic_load(&distance[graph.to[e]]), weight = edge_weight(node, graph.to[e]);
            none_shorter = none_shorter && here <= there + weight;
            reached = reached || here == there + weight;
        }
        all_reached = all_reached && reached;
    }
    check(none_shorter && all_reached, "distances are those of ways, and of the shortest ones");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    width = specs[2].value;
    sources = specs[3].value;
    graph_make(&graph, specs[0].value, specs[1].value);
    distance = must_alloc(sizeof *distance * (size_t)graph.nodes);
    /* A node is put into a bucket at most once for each edge that leads to it. */
    frontier = must_alloc(sizeof *frontier * (size_t)(graph.ends + 1));
    run_team(MAIN_WAITS, work);
    printf("result: delta-stepping %ld nodes, %ld sources: %016lx\n", graph.nodes, sources, (unsigned long)result);
    if (self_check)
        verify();
    return 0;
}
