/* Electromagnetic waves on an irregular bipartite graph: electric nodes depend on magnetic ones and the other way
 * round. In each iteration every electric node becomes a weighted sum of its magnetic neighbours, then every
 * magnetic node one of its electric neighbours, with a barrier after each half.
 *
 * Most neighbours are close by in the order of the nodes, some are anywhere. Nodes point at the values of their
 * neighbours. Main builds the graph and waits.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'n', "nodes of both kinds together", 4000, 64000, 2, 100000000, 0},
    {'d', "neighbours of a node", 10, 20, 1, 1000, 0},
    {'r', "per cent of the neighbours that are anywhere", 5, 5, 0, 100, 0},
    {'i', "iterations", 20, 100, 1, 1000000, 0},
};
static struct app app = {"em3d", "electromagnetic waves on a bipartite graph", specs, 4, NULL, NULL};

enum { SPAN = 100 }; /* how far away in the order a close neighbour may be */

struct node {
    double value;
    const double **from; /* values of the neighbours */
    double *weight;
};

static long half, degree, far_percent, iterations;
static struct node *electric, *magnetic;

/* The neighbours of the nodes in order come out of one stream of random numbers. */
static long draw_neighbour(struct random *r, long i)
{
    if ((long)(random_bits(r) % 100) < far_percent)
        return (long)(random_bits(r) % (uint64_t)half);
    long offset = (long)(random_bits(r) % (2 * SPAN + 1)) - SPAN;
    return ((i + offset) % half + half) % half;
}

static double draw_weight(struct random *r)
{
    return (random_unit(r) - 0.5) / (double)degree;
}

static struct node *new_nodes(struct random *r)
{
    struct node *nodes = must_alloc(sizeof *nodes * (size_t)half);
    for (long i = 0; i < half; i++) {
        nodes[i].value = random_unit(r);
        nodes[i].from = must_alloc(sizeof *nodes[i].from * (size_t)degree);
        nodes[i].weight = must_alloc(sizeof *nodes[i].weight * (size_t)degree);
    }
    return nodes;
}

static void connect(struct node *nodes, const struct node *others, struct random *r)
{
    for (long i = 0; i < half; i++)
        for (long d = 0; d < degree; d++) {
            nodes[i].from[d] = &others[draw_neighbour(r, i)].value;
            nodes[i].weight[d] = draw_weight(r);
        }
}

static void update(struct node *nodes, long first, long last)
{
    for (long i = first; i < last; i++) {
        double value = nodes[i].value;
        for (long d = 0; d < degree; d++)
            value -= *nodes[i].from[d] * nodes[i].weight[d];
        nodes[i].value = value;
    }
}

static void work(int self)
{
    long first, last;
    my_block(half, self, &first, &last);
    for (long step = 0; step < iterations; step++) {
        update(electric, first, last);
        team_barrier();
        update(magnetic, first, last);
        team_barrier();
    }
}

/* The same waves on a graph of numbers instead of pointers, drawn afresh. */
static void verify(void)
{
    struct random r = {64000};
    size_t edges = (size_t)(half * degree);
    double *value[2], *weight[2];
    long *from[2];
    for (int kind = 0; kind < 2; kind++) {
        value[kind] = must_alloc(sizeof(double) * (size_t)half);
        weight[kind] = must_alloc(sizeof(double) * edges);
        from[kind] = must_alloc(sizeof(long) * edges);
        for (long i = 0; i < half; i++)
            value[kind][i] = random_unit(&r);
    }
    for (int kind = 0; kind < 2; kind++)
        for (long e = 0; e < (long)edges; e++) {
            from[kind][e] = draw_neighbour(&r, e / degree);
            weight[kind][e] = draw_weight(&r);
        }
    for (long step = 0; step < 2 * iterations; step++) {
        double *mine = value[step % 2], *other = value[1 - step % 2];
        for (long e = 0; e < (long)edges; e++)
            mine[e / degree] -= other[from[step % 2][e]] * weight[step % 2][e];
    }
    bool same = true;
    for (long i = 0; i < half; i++)
        same &= fabs(value[0][i] - electric[i].value) < 1e-9 && fabs(value[1][i] - magnetic[i].value) < 1e-9;
    check(same, "equal to one thread on a graph of numbers");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    half = specs[0].value / 2;
    degree = specs[1].value;
    far_percent = specs[2].value;
    iterations = specs[3].value;
    struct random r = {64000};
    electric = new_nodes(&r);
    magnetic = new_nodes(&r);
    connect(electric, magnetic, &r);
    connect(magnetic, electric, &r);
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    for (long i = 0; i < half; i++) {
        hash = hash_bytes(hash, &electric[i].value, sizeof(double));
        hash = hash_bytes(hash, &magnetic[i].value, sizeof(double));
    }
    printf("result: em3d %ld nodes, degree %ld, %ld iterations: %016lx\n", 2 * half, degree, iterations,
           (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
