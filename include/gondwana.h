/* Resource sets, placement of threads and memory, and the monitor, on a NUMA computer and on a cluster under `gondwana run`.
 *
 * Link with -lgondwana_api (pkg-config gondwana). gondwana(7) is an introduction, gw_alloc(3) and so on tell details.
 *
 * Calls that fail return -1, or NULL, and set errno; gw_error_message() says in a sentence what is wrong. Calls that
 * succeed may still not have had everything that was asked for, because a container, a cpuset or a full node is in the
 * way: gw_remark() says so, and GW_STRICT makes it an error.
 *
 * Sets belong to the program, which gives them back with gw_rset_free(). Any thread may use them, on any node.
 *
 * The same executable runs on one computer and under `gondwana run`, where nodes are those of the run and a page is on its
 * home. gondwana(7) says what differs there. */
#ifndef GONDWANA_H
#define GONDWANA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; gw_version() is that of the library. */
#define GW_VERSION "0.1.0"

const char *gw_version(void);

/* What the last call of this thread that failed says; "" if none has. Stays until the next one fails. On a cluster, only
 * the thread itself can read it. */
const char *gw_error_message(void);

/* What the last call of this thread to gw_alloc, gw_bind, gw_thread_create or gw_misplaced that succeeded could not
 * have; "" if everything is as asked for. */
const char *gw_remark(void);

/* ---- Flags. Each call says which of them it takes. */

#define GW_EXCLUSIVE 0x01u   /* the set shares nothing with other exclusive parts of its parent */
#define GW_STRICT 0x02u      /* what cannot be had entirely is an error, ENOTSUP, and nothing has changed */
#define GW_PREFAULT 0x04u    /* all pages are there at once, also with GW_FLOAT */
#define GW_LOCK 0x08u        /* pages stay in memory */
#define GW_SMALL_PAGES 0x10u /* no huge pages */
#define GW_COLOURED 0x20u    /* pages in a row cycle through the colours of a cache */

/* ---- The machine: nodes with processors and memory. */

#define GW_HOST 1    /* one computer; its kernel places threads and pages */
#define GW_CLUSTER 2 /* several nodes under `gondwana run` */

int gw_kind(void);

/* Bytes in a page: the unit of placement. */
size_t gw_page_size(void);

/* How many nodes there are, and the numbers of as many as there is room for, in ascending order. */
int gw_nodes(int *nodes, int room);

/* Bytes of memory of a node, and how many of them are left. Either pointer may be NULL. */
int gw_node_memory(int node, uint64_t *total, uint64_t *available);

/* How far the memory of one node is from another node: 10 is local. */
int gw_distance(int from, int to);

int gw_node_of_processor(int processor);

/* The node on which the calling thread is at this moment, and the processor, unless the pointer is NULL. */
int gw_here(int *processor);

/* ---- Resource sets: processors, and the memory of nodes. */

typedef struct gw_rset gw_rset;

gw_rset *gw_rset_all(void);         /* everything in the machine */
gw_rset *gw_rset_allowed(void);     /* what cpusets and the like let this process use of it */
gw_rset *gw_rset_of_node(int node); /* the processors and the memory of a node */

/* "node:0-1", "cpu:0-7" (with the memory nearest to them), "proc:0-7|mem:0", "all", "none", names of sets; "a|b" union,
 * "a&b" intersection, "a-b" difference, parentheses. */
gw_rset *gw_rset_parse(const char *text);

/* The set as a text that gw_rset_parse reads. As snprintf: the length of the whole text, of which as much is written
 * as there is room for. */
int gw_rset_text(const gw_rset *set, char *text, size_t room);

gw_rset *gw_rset_union(const gw_rset *a, const gw_rset *b);
gw_rset *gw_rset_intersection(const gw_rset *a, const gw_rset *b);
gw_rset *gw_rset_difference(const gw_rset *a, const gw_rset *b);

/* 1 or 0; -1 is an error. */
int gw_rset_contains(const gw_rset *outer, const gw_rset *inner);
int gw_rset_equal(const gw_rset *a, const gw_rset *b);
int gw_rset_is_empty(const gw_rset *set);

/* How many processors, or nodes with memory, are in the set, and the numbers of as many as there is room for. */
int gw_rset_processors(const gw_rset *set, int *processors, int room);
int gw_rset_memory(const gw_rset *set, int *nodes, int room);

/* NULL is none. */
int gw_rset_free(gw_rset *set);

/* Names, as `gondwana rset` shows them, which other programs can use too. A set is contained in its parent; without one
 * (NULL) it is a part of the machine. Flag: GW_EXCLUSIVE. */
int gw_rset_name(const char *name, const gw_rset *set, const char *parent, unsigned flags);

/* Only a set without parts can be forgotten. */
int gw_rset_forget(const char *name);

/* The names of the parts of a set, or of the machine (NULL), with '\n' after each. As snprintf. */
int gw_rset_names(const char *parent, char *names, size_t room);

/* ---- Binding: where threads run, and where memory that they touch first comes from. */

#define GW_THREAD 1  /* the calling thread */
#define GW_PROCESS 2 /* all threads of the program */

/* Threads inherit the binding of the one that starts them. Flag: GW_STRICT. On a cluster threads stay on their node: a set
 * without processors of it is ENOTSUP, as is GW_PROCESS with less than everything. */
int gw_bind(int whom, const gw_rset *set, unsigned flags);

/* The set as the system has it now, which need not be what was asked for. */
gw_rset *gw_binding(int whom);

/* As pthread_create, for a thread that is in the set before it does anything. pthread_join and all other functions for
 * threads take its name. On a cluster it is on the node of the set that has the fewest threads. */
int gw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, const gw_rset *set,
                     void *(*routine)(void *), void *argument);

/* ---- Memory. */

#define GW_FLOAT 1   /* wherever in the set the system puts each page when it is touched first */
#define GW_LOCAL 2   /* on the node of the calling thread, or the one of the set that is nearest to it */
#define GW_REMOTE 3  /* on another node of the set: to find out what distance costs */
#define GW_STRIPED 4 /* `stride` pages on one node of the set, as many on the next and so on, again and again */
#define GW_BLOCK 5   /* contiguous parts of equal size, one for each node of the set */

/* Zeros, from the start of a page on, until gw_free(). `stride` is 0 but with GW_STRIPED.
 * Flags: GW_PREFAULT, GW_LOCK, GW_SMALL_PAGES, GW_COLOURED, GW_STRICT. */
void *gw_alloc(size_t bytes, const gw_rset *set, int policy, size_t stride, unsigned flags);

/* NULL is none. */
int gw_free(void *memory);

/* A page that was never touched, or is out on a disk. On a cluster, pages with a policy have a home before that. */
#define GW_NOWHERE (-1)
#define GW_ANY (-2)     /* a page for which no particular node was asked for */

/* How many pages a range of any memory has, and the nodes where as many as there is room for really are. */
long gw_where(const void *start, size_t bytes, int *nodes, size_t room);

/* How many pages a block from gw_alloc has, and the nodes that were asked for. */
long gw_asked(const void *memory, int *nodes, size_t room);

/* How many pages of a block from gw_alloc are on other nodes than asked for. */
long gw_misplaced(const void *memory);

/* ---- The monitor: what crosses between the nodes of a run. On one computer, whose hardware keeps its memory coherent and
 * does not report it, there is nothing to count: ENOTSUP. */

/* Records the run in a file, on the launcher's computer, from now on, as `gondwana monitor` does; and no more. */
int gw_monitor_start(const char *file);
int gw_monitor_stop(void);

/* Kinds of transactions, to be combined with |. */
#define GW_READ 0x0001u         /* a page fetched for a read, lost to a writer before */
#define GW_WRITE 0x0002u        /* the same for a write */
#define GW_COLD_READ 0x0004u    /* a page that the node never had */
#define GW_COLD_WRITE 0x0008u
#define GW_EXCESS_READ 0x0010u  /* a page that the node had, and did not lose to a writer */
#define GW_EXCESS_WRITE 0x0020u
#define GW_AHEAD 0x0040u        /* a page that came along with another */
#define GW_UPGRADE 0x0080u      /* the first write of a page that was there for reading */
#define GW_DIFF 0x0100u         /* written bytes that went to the home of their page */
#define GW_NOTICE 0x0200u       /* news that another node has written */
#define GW_INVALIDATION 0x0400u /* a copy given up for a writer */
#define GW_RECALL 0x0800u       /* a page that was this node's alone, and another one asked for */
#define GW_LOCK_HAND_OFF 0x1000u
#define GW_FETCHES 0x003fu /* everything that a thread waits for */

#define GW_OUT 1u /* caused by this node */
#define GW_IN 2u  /* caused by another one */

/* Called by a thread of its own on the node that has set the filter, some hundredths of a second after a node's counter of the
 * unit at this address has reached the threshold. May read counters. */
typedef void gw_monitor_callback(int filter, const void *address, uint64_t count, void *argument);

/* Which transactions are counted, with a counter for each unit of a range of addresses. */
typedef struct gw_filter {
    const void *start;             /* a multiple of the unit, as is the number of bytes */
    size_t bytes;
    size_t unit;                   /* a power of two from 32 bytes to 2 MiB */
    unsigned kinds;                /* 0 is all */
    unsigned directions;           /* 0 is both */
    long first;                    /* the counter of the first unit; -1 takes free ones */
    uint64_t threshold;            /* 0 is none */
    int repeated;                  /* again each time that so many more were counted */
    int descriptor;                /* an eventfd of this node that a reached threshold signals; -1 is none */
    gw_monitor_callback *callback; /* NULL is none */
    void *argument;
} gw_filter;

/* Sets a filter on all nodes: each counts what it sees. Its number, which any thread may use. */
int gw_monitor_filter(const gw_filter *filter);
int gw_monitor_remove(int filter);

/* How many counters the filter has on each node, and what as many as there is room for have counted: on all nodes together,
 * or on one. */
long gw_monitor_read(int filter, uint64_t *counters, size_t room);
long gw_monitor_read_node(int filter, int node, uint64_t *counters, size_t room);

/* A secondary counter, which counts what all these filters count of these kinds (0: all); its number. */
int gw_monitor_shadow(const int *filters, size_t count, unsigned kinds);
int gw_monitor_secondary(int secondary, uint64_t *counted);
int gw_monitor_secondary_node(int secondary, int node, uint64_t *counted);
int gw_monitor_unshadow(int secondary);

/* What reports call the data in a range of shared addresses. */
int gw_monitor_name(const void *start, size_t bytes, const char *name);

#ifdef __cplusplus
}
#endif

#endif
