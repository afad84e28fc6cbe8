/* Betweenness of the nodes of a random graph: on how many of the shortest ways they are, for ways from some nodes.
 *
 * From each of these nodes threads search the graph level by level: a node is found by compare-and-swap and put into
 * the common list with an atomic addition, and numbers of ways are added atomically. Then levels are gone through
 * backwards: U. Brandes, "A faster algorithm for betweenness centrality" (2001). Each node adds up what comes from
 * its neighbours in their order, so that no rounding depends on who found what first.
 */
#include "common.h"
#include "kronecker.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'g', "the graph has 2^N nodes", 7, 16, 2, 26, 0},
    {'k', "edges for each node", 8, 16, 1, 64, 0},
    {'i', "nodes to begin at, one after the other", 2, 4, 1, 1000, 0},
};
static struct app app = {"betweenness", "betweenness of nodes with C11 atomics", specs, 3, NULL, NULL};

enum { MAX_LEVELS = 1000, AT_ONCE = 16 };

static struct graph graph;
static long sources;
static _Atomic int *depth;      /* -1: not found yet */
static _Atomic uint64_t *ways;  /* shortest ones from the source */
static double *depends, *betweenness;
static uint32_t *found;         /* nodes by levels: found[level_end[d - 1]] ... found[level_end[d] - 1] */
static _Atomic long found_used, taken;
static long level_end[MAX_LEVELS];
static double sum_of_depths;

/* Threads share the nodes of a level in small parts as they come. */
static bool next_part(long end, long *first, long *last)
{
    *first = atomic_fetch_add(&taken, AT_ONCE);
    *last = *first + AT_ONCE < end ? *first + AT_ONCE : end;
    return *first < end;
}

/* What a node of level d leads to is of level d + 1, if nobody was there before. */
static void search_from(uint32_t node, int d)
{
    uint64_t here = atomic_load_explicit(&ways[node], memory_order_relaxed);
    for (long e = graph.start[node]; e < graph.start[node + 1]; e++) {
        uint32_t to = graph.to[e];
        int seen = atomic_load(&depth[to]);
        if (seen < 0 && atomic_compare_exchange_strong(&depth[to], &seen, d + 1)) {
            found[atomic_fetch_add(&found_used, 1)] = to;
            seen = d + 1;
        }
        if (seen == d + 1)
            atomic_fetch_add(&ways[to], here);
    }
}

/* The part of the ways to other nodes that go through this one of level d. */
static void add_up(uint32_t node, int d)
{
    double sum = 0, here = (double)atomic_load_explicit(&ways[node], memory_order_relaxed);
    for (long e = graph.start[node]; e < graph.start[node + 1]; e++) {
        uint32_t to = graph.to[e];
        if (atomic_load_explicit(&depth[to], memory_order_relaxed) == d + 1)
            sum += here / (double)atomic_load_explicit(&ways[to], memory_order_relaxed) * (1 + depends[to]);
    }
    depends[node] = sum;
    if (d > 0)
        betweenness[node] += sum;
}

static void begin(uint32_t source)
{
    atomic_store(&depth[source], 0);
    atomic_store(&ways[source], 1);
    found[0] = source;
    atomic_store(&found_used, 1);
    atomic_store(&taken, 0);
    level_end[0] = 1;
}

/* Returns the number of levels. */
static int search(int self)
{
    for (int d = 0;; d++) {
        long first, last, end = level_end[d];
        if (d == MAX_LEVELS - 1)
            die("the graph has too many levels");
        while (next_part(end, &first, &last))
            for (long i = first; i < last; i++)
                search_from(found[i], d);
        team_barrier();
        if (self == 0) {
            level_end[d + 1] = atomic_load(&found_used);
            atomic_store(&taken, end);
        }
        team_barrier();
        if (level_end[d + 1] == end)
            return d + 1;
    }
}

static void go_back(int self, int levels)
{
    for (int d = levels - 1; d >= 0; d--) {
        long first, last, begins = d > 0 ? level_end[d - 1] : 0;
        team_barrier();
        if (self == 0)
            atomic_store(&taken, begins);
        team_barrier();
        while (next_part(level_end[d], &first, &last))
            for (long i = first; i < last; i++)
                add_up(found[i], d);
    }
    team_barrier();
}

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
    long first, last;
    my_block(graph.nodes, self, &first, &last);
    graph_build(&graph, self);
    for (long i = first; i < last; i++)
        betweenness[i] = 0;
    for (long number = 0; number < sources; number++) {
        for (long i = first; i < last; i++) {
            atomic_store_explicit(&depth[i], -1, memory_order_relaxed);
            atomic_store_explicit(&ways[i], 0, memory_order_relaxed);
        }
        team_barrier();
        if (self == 0)
            begin(source_of(number));
        team_barrier();
        int levels = search(self);
        go_back(self, levels);
        /* Each way goes through as many nodes as levels lie between its ends. */
        if (self == 0)
            for (int d = 1; d < levels; d++)
                sum_of_depths += (double)((d - 1) * (level_end[d] - level_end[d - 1]));
        team_barrier();
    }
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    sources = specs[2].value;
    graph_make(&graph, specs[0].value, specs[1].value);
    depth = must_alloc(sizeof *depth * (size_t)graph.nodes);
    ways = must_alloc(sizeof *ways * (size_t)graph.nodes);
    depends = must_alloc(sizeof *depends * (size_t)graph.nodes);
    betweenness = must_alloc(sizeof *betweenness * (size_t)graph.nodes);
    found = must_alloc(sizeof *found * (size_t)graph.nodes);
    run_team(MAIN_WAITS, work);
    printf("result: betweenness %ld nodes, %ld sources: %016lx\n", graph.nodes, sources,
           (unsigned long)hash_bytes(HASH_START, betweenness, sizeof *betweenness * (size_t)graph.nodes));
    double sum = 0;
    for (long i = 0; i < graph.nodes; i++)
        sum += betweenness[i];
    if (self_check)
        check(fabs(sum - sum_of_depths) <= 1e-9 * sum_of_depths, "ways together have as many nodes as they are long");
    return 0;
}
