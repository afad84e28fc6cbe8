#include "kronecker.h"

#include "common.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic long *ends_of; /* by node: first how many, then where the next one goes */
static long scale;

void graph_make(struct graph *g, long graph_scale, long factor)
{
    scale = graph_scale;
    g->nodes = 1L << scale;
    g->ends = 2 * factor * g->nodes;
    g->start = must_alloc(sizeof *g->start * (size_t)(g->nodes + 1));
    g->to = must_alloc(sizeof *g->to * (size_t)g->ends);
    ends_of = must_alloc(sizeof *ends_of * (size_t)g->nodes);
}

/* The two ends of an edge. Each bit takes one of the four quarters of the matrix of all edges. */
static void find_ends(const struct graph *g, long edge, uint32_t *ends)
{
    struct random r = {(uint64_t)edge * 2 + 1};
    uint64_t from = 0, to = 0, last = (uint64_t)g->nodes - 1;
    random_bits(&r);
    for (long bit = 0; bit < scale; bit++) {
        double quarter = random_unit(&r);
        from = from << 1 | (quarter >= 0.57 + 0.19);
        to = to << 1 | ((quarter >= 0.57 && quarter < 0.57 + 0.19) || quarter >= 0.57 + 0.19 + 0.19);
    }
    /* The nodes with many edges, which have small numbers, are spread. The factor is odd: no two nodes become one. */
    ends[0] = (uint32_t)(from * 0x9e3779b97f4a7c15u & last);
    ends[1] = (uint32_t)(to * 0x9e3779b97f4a7c15u & last);
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

void graph_build(struct graph *g, int self)
{
    long first, last, first_edge, last_edge;
    uint32_t ends[2];
    my_block(g->nodes, self, &first, &last);
    my_block(g->ends / 2, self, &first_edge, &last_edge);
    for (long i = first; i < last; i++)
        atomic_init(&ends_of[i], 0);
    team_barrier();
    for (long e = first_edge; e < last_edge; e++) {
        find_ends(g, e, ends);
        for (int k = 0; k < 2; k++)
            atomic_fetch_add_explicit(&ends_of[ends[k]], 1, memory_order_relaxed);
    }
    team_barrier();
    if (self == 0) {
        long sum = 0;
        for (long i = 0; i < g->nodes; i++) {
            g->start[i] = sum;
            sum += atomic_exchange_explicit(&ends_of[i], sum, memory_order_relaxed);
        }
        g->start[g->nodes] = sum;
    }
    team_barrier();
    for (long e = first_edge; e < last_edge; e++) {
        find_ends(g, e, ends);
        for (int k = 0; k < 2; k++)
            g->to[atomic_fetch_add_explicit(&ends_of[ends[k]], 1, memory_order_relaxed)] = ends[!k];
    }
    team_barrier();
    for (long i = first; i < last; i++)
        qsort(g->to + g->start[i], (size_t)(g->start[i + 1] - g->start[i]), sizeof *g->to, by_number);
    team_barrier();
}

uint32_t edge_weight(uint32_t a, uint32_t b)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    struct random r = {(low << 32 | high) * 2 + 1};
    random_bits(&r);
    return (uint32_t)(random_bits(&r) % MAX_WEIGHT) + 1;
}
