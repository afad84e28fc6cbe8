/* Connected components of a random graph, by trees that grow together.
 *
 * Each node points to one of the same component with a smaller number, or to itself. For each edge a thread looks
 * for the roots of both ends and hangs the greater one below the other by compare-and-swap, shortening the ways on
 * which it went. At the end all nodes of a component point to its least one, whoever came first.
 */
#include "common.h"
#include "kronecker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'g', "the graph has 2^N nodes", 8, 18, 2, 26, 0},
    {'k', "edges for each node", 2, 4, 1, 64, 0},
};
static struct app app = {"components", "connected components with C11 atomics", specs, 2, NULL, NULL};

static struct graph graph;
static _Atomic uint32_t *parent;
static _Atomic long components;

static uint32_t root_of(uint32_t node)
{
    for (;;) {
        uint32_t up = atomic_load(&parent[node]), next = atomic_load(&parent[up]);
        if (up == next)
            return up;
        /* Half of the way for who comes next; it does no harm if another thread was faster. */
        atomic_compare_exchange_weak(&parent[node], &up, next);
        node = next;
    }
}

static void join(uint32_t a, uint32_t b)
{
    for (;;) {
        a = root_of(a);
        b = root_of(b);
        if (a == b)
            return;
        uint32_t low = a < b ? a : b, high = a < b ? b : a, expected = high;
        if (atomic_compare_exchange_strong(&parent[high], &expected, low))
            return;
    }
}

static void work(int self)
{
    long first, last, roots = 0;
    my_block(graph.nodes, self, &first, &last);
    graph_build(&graph, self);
    for (long i = first; i < last; i++)
        atomic_init(&parent[i], (uint32_t)i);
    team_barrier();
    for (long i = first; i < last; i++)
        for (long e = graph.start[i]; e < graph.start[i + 1] && graph.to[e] < i; e++)
            join((uint32_t)i, graph.to[e]);
    team_barrier();
    for (long i = first; i < last; i++) {
        uint32_t root = root_of((uint32_t)i);
        atomic_store(&parent[i], root);
        roots += root == (uint32_t)i;
    }
    atomic_fetch_add(&components, roots);
}

/* Each node is reached from the least one of its component, and no edge leaves a component. */
static void verify(void)
{
    uint32_t *waiting = must_alloc(sizeof *waiting * (size_t)graph.nodes);
    bool *seen = calloc((size_t)graph.nodes, sizeof *seen), right = seen != NULL;
    for (uint32_t start = 0; right && start < graph.nodes; start++) {
        long used = 0;
        if (!seen[start])
            waiting[used++] = start;
        seen[start] = true;
        while (used > 0) {
            uint32_t node = waiting[--used];
            right = right && atomic_load(&parent[node]) == atomic_load(&parent[start]);
            for (long e = graph.start[node]; e < graph.start[node + 1]; e++)
                if (!seen[graph.to[e]]) {
                    seen[graph.to[e]] = true;
                    waiting[used++] = graph.to[e];
                }
        }
        right = right && atomic_load(&parent[start]) <= start;
    }
    free(waiting);
    free(seen);
    check(right, "a search finds the same components");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    graph_make(&graph, specs[0].value, specs[1].value);
    parent = must_alloc(sizeof *parent * (size_t)graph.nodes);
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    for (long i = 0; i < graph.nodes; i++) {
        uint32_t root = atomic_load(&parent[i]);
        hash = hash_bytes(hash, &root, sizeof root);
    }
    printf("result: components %ld nodes, %ld components: %016lx\n", graph.nodes, atomic_load(&components),
           (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
