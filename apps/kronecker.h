/* A random graph of 2^scale nodes that has few nodes with very many edges, built by all threads with atomic instructions:
 * Chakrabarti, Zhan and Faloutsos, "R-MAT: A Recursive Model for Graph Mining" (SDM 2004), with the numbers of the
 * Graph500 benchmark. */
#ifndef APPS_KRONECKER_H
#define APPS_KRONECKER_H

#include <stdint.h>

struct graph {
    long nodes, ends;  /* each edge has two ends, and is found at both */
    long *start;       /* neighbours of node i: to[start[i]] ... to[start[i + 1] - 1], in ascending order */
    uint32_t *to;
};

enum { MAX_WEIGHT = 255 };

/* Memory for a graph with `factor` edges for each node; before run_team(). */
void graph_make(struct graph *g, long scale, long factor);

/* Fills it; all threads call this inside of run_team(). */
void graph_build(struct graph *g, int self);

/* The weight of an edge from 1 to MAX_WEIGHT, the same in both directions. */
uint32_t edge_weight(uint32_t a, uint32_t b);

#endif
