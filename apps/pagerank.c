/* PageRank of Debian's packages: a package is important if important packages depend on it.
 *
 * Each iteration gathers the ranks of a package's dependents. Ranks of packages without dependencies, and the
 * change of an iteration, are summed in a fixed number of pieces, so that no rounding depends on the number of
 * threads. Main reads the graph, computes as thread 0, and prints the most important packages.
 *
 * That graph takes some milliseconds. With -g the graph is a random one instead, of any size, that has few nodes with very
 * many edges as real ones do: Chakrabarti, Zhan and Faloutsos, "R-MAT: A Recursive Model for Graph Mining" (SDM 2004), with
 * the numbers of the Graph500 benchmark.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 64, TOP = 5, RANDOM_EDGES = 16 };

static struct option_spec specs[] = {
    {'i', "most iterations", 50, 1000, 1, 1000000, 0},
    {'g', "a random graph of 2^N nodes instead of the file; 0: the file", 0, 0, 0, 26, 0},
};
static struct app app = {"pagerank", "PageRank of a graph of package dependencies", specs, 2, "data/debian.graph",
                         "the graph, as written by data/make-graph"};

static const double follow = 0.85; /* probability of following a dependency */

static long nodes, edges, most_iterations, iterations_done;
static char **names; /* NULL for a random graph */
static long *in_start, *in_from; /* dependents of node i: in_from[in_start[i]] .. in_from[in_start[i + 1] - 1] */
static long *out_degree;
static double *rank[2];
static double loose[PIECES], change[PIECES]; /* partial sums by piece */

static void bad_graph(long line, const char *what)
{
    die("%s, line %ld: %s", app.file, line, what);
}

/* Keeps the edges, which go from from[e] to to[e], by their ends. */
static void turn_round(const long *from, const long *to)
{
    out_degree = calloc((size_t)nodes, sizeof *out_degree);
    in_start = calloc((size_t)nodes + 2, sizeof *in_start);
    in_from = must_alloc(sizeof *in_from * (size_t)(edges + 1));
    if (!out_degree || !in_start)
        die("cannot allocate a graph of %ld nodes", nodes);
    for (long e = 0; e < edges; e++) {
        out_degree[from[e]]++;
        in_start[to[e] + 2]++;
    }
    /* in_start[i + 1] walks from the start to the end of node i's dependents while they are filled in. */
    for (long i = 2; i < nodes + 2; i++)
        in_start[i] += in_start[i - 1];
    for (long e = 0; e < edges; e++)
        in_from[in_start[to[e] + 1]++] = from[e];
}

/* Each bit of an edge's two ends takes one of the four quarters of the matrix of all edges. */
static void random_graph(long scale)
{
    nodes = 1L << scale;
    edges = RANDOM_EDGES * nodes;
    long *from = must_alloc(sizeof *from * (size_t)edges);
    long *to = must_alloc(sizeof *to * (size_t)edges);
    struct random random = {1};
    for (long e = 0; e < edges; e++) {
        unsigned long ends[2] = {0, 0};
        for (long bit = 0; bit < scale; bit++) {
            double quarter = random_unit(&random);
            ends[0] = ends[0] << 1 | (quarter >= 0.57 + 0.19);
            ends[1] = ends[1] << 1 | ((quarter >= 0.57 && quarter < 0.57 + 0.19) || quarter >= 0.57 + 0.19 + 0.19);
        }
        /* The nodes with many edges, which have small numbers, are spread: threads own blocks. */
        from[e] = (long)(ends[0] * 0x9e3779b97f4a7c15u % (unsigned long)nodes);
        to[e] = (long)(ends[1] * 0x9e3779b97f4a7c15u % (unsigned long)nodes);
    }
    turn_round(from, to);
    free(from);
    free(to);
}

/* Reads the graph from the file. */
static void read_graph(void)
{
    FILE *f = fopen(app.file, "r");
    if (!f)
        die("cannot open %s", app.file);
    char *text = NULL;
    size_t size = 0;
    long line = 0;
    do
        line++;
    while (getline(&text, &size, f) > 0 && text[0] == '#');
    if (!text || sscanf(text, "%ld %ld", &nodes, &edges) != 2 || nodes < 1 || edges < 0 || nodes > 100000000 ||
        edges > 1000000000)
        bad_graph(line, "expected the numbers of packages and of edges");
    names = must_alloc(sizeof *names * (size_t)nodes);
    long *from = must_alloc(sizeof *from * (size_t)(edges + 1));
    long *to = must_alloc(sizeof *to * (size_t)(edges + 1));
    long seen = 0;
    for (long i = 0; i < nodes; i++) {
        line++;
        if (getline(&text, &size, f) <= 0)
            bad_graph(line, "the file ends too early");
        char *rest = NULL, *word = strtok_r(text, " \n", &rest);
        if (!word)
            bad_graph(line, "expected a name");
        names[i] = strdup(word);
        while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
            char *end;
            long target = strtol(word, &end, 10);
            if (*end || target < 0 || target >= nodes || seen >= edges)
                bad_graph(line, "a target is wrong, or there are too many");
            from[seen] = i;
            to[seen++] = target;
        }
    }
    if (seen != edges)
        bad_graph(line, "there are fewer edges than promised");
    turn_round(from, to);
    free(from);
    free(to);
    free(text);
    fclose(f);
}

static double total(const double *parts)
{
    double sum = 0;
    for (int i = 0; i < PIECES; i++)
        sum += parts[i];
    return sum;
}

static void gather(const double *old, double *new, int piece, double base)
{
    long first = nodes * piece / PIECES, last = nodes * (piece + 1) / PIECES;
    double moved = 0;
    for (long i = first; i < last; i++) {
        double sum = 0;
        for (long e = in_start[i]; e < in_start[i + 1]; e++)
            sum += old[in_from[e]] / (double)out_degree[in_from[e]];
        new[i] = base + follow * sum;
        moved += fabs(new[i] - old[i]);
    }
    change[piece] = moved;
}

static void sum_loose(const double *ranks, int piece)
{
    double sum = 0;
    for (long i = nodes * piece / PIECES; i < nodes * (piece + 1) / PIECES; i++)
        if (out_degree[i] == 0)
            sum += ranks[i];
    loose[piece] = sum;
}

static void work(int self)
{
    long first, last;
    my_block(PIECES, self, &first, &last);
    for (long step = 0; step < most_iterations; step++) {
        const double *old = rank[step % 2];
        double *new = rank[(step + 1) % 2];
        for (long piece = first; piece < last; piece++)
            sum_loose(old, (int)piece);
        team_barrier();
        double base = (1 - follow + follow * total(loose)) / (double)nodes;
        for (long piece = first; piece < last; piece++)
            gather(old, new, (int)piece, base);
        team_barrier();
        /* Everyone comes to the same decision from the same sums. */
        bool converged = total(change) < 1e-12;
        if (self == 0)
            iterations_done = step + 1;
        if (converged)
            break;
    }
}

/* Scatters the ranks along the edges once more: the sum is 1 and, if the iteration converged, nothing changes. */
static void verify(const double *ranks)
{
    double *next = must_alloc(sizeof *next * (size_t)nodes);
    double sum = 0, lost = 0, moved = 0;
    for (long i = 0; i < nodes; i++) {
        sum += ranks[i];
        next[i] = 0;
        lost += out_degree[i] == 0 ? ranks[i] : 0;
    }
    for (long i = 0; i < nodes; i++)
        for (long e = in_start[i]; e < in_start[i + 1]; e++)
            next[i] += follow * ranks[in_from[e]] / (double)out_degree[in_from[e]];
    for (long i = 0; i < nodes; i++)
        moved += fabs(next[i] + (1 - follow + follow * lost) / (double)nodes - ranks[i]);
    check(fabs(sum - 1) < 1e-9, "the ranks add up to 1");
    check(moved <= total(change) + 1e-12, "the ranks are a fixed point as far as was iterated");
}

static void print_top(const double *ranks)
{
    bool *taken = calloc((size_t)nodes, sizeof *taken);
    printf("most important:");
    for (int place = 0; place < TOP && place < nodes; place++) {
        long best = -1;
        for (long i = 0; i < nodes; i++)
            if (!taken[i] && (best < 0 || ranks[i] > ranks[best]))
                best = i;
        taken[best] = true;
        if (names)
            printf(" %s", names[best]);
        else
            printf(" %ld", best);
    }
    printf("\n");
    free(taken);
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    most_iterations = specs[0].value;
    if (specs[1].value)
        random_graph(specs[1].value);
    else
        read_graph();
    for (int i = 0; i < 2; i++)
        rank[i] = must_alloc(sizeof(double) * (size_t)nodes);
    for (long i = 0; i < nodes; i++)
        rank[0][i] = 1.0 / (double)nodes;
    run_team(MAIN_WORKS, work);
    const double *ranks = rank[iterations_done % 2];
    print_top(ranks);
    printf("result: pagerank of %ld %s, %ld edges, %ld iterations: %016lx\n", nodes, names ? "packages" : "nodes", edges,
           iterations_done, (unsigned long)hash_bytes(HASH_START, ranks, sizeof(double) * (size_t)nodes));
    if (self_check)
        verify(ranks);
    return 0;
}
