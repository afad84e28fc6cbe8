/* Resource sets, placement of threads and memory, and the monitor, on a NUMA computer and on a cluster under `gondwana run`.
 *
 * Link with -lgondwana_api (pkg-config gondwana). gondwana(7) is an introduction; each function has a manual page.
 *
 * Calls that fail return -1, or NULL, and set errno; gw_error_message() returns one sentence about the error. A call that
 * succeeds may be satisfied in part only, because of a container, a cpuset or a full node: gw_remark() says so, and
 * GW_STRICT makes it an error.
 *
 * The program frees sets with gw_rset_free(). Any thread may use them, on any node.
 *
 * The same executable runs on one computer and under `gondwana run`, where nodes are those of the run and the node of a
 * page is its home. gondwana(7) describes the differences. */
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

/* The message of this thread's last failed call; "" if none has failed. It stays until the next call fails. On a cluster,
 * only the thread itself can read it. */
const char *gw_error_message(void);

/* What this thread's last successful call to gw_alloc, gw_bind, gw_thread_create or gw_misplaced could not achieve; "" if
 * everything is as requested. */
const char *gw_remark(void);

/* ---- Flags. The description of each function lists those that it accepts. */

#define GW_EXCLUSIVE 0x01u   /* the set does not overlap other exclusive parts of its parent */
#define GW_STRICT 0x02u      /* fail with ENOTSUP and change nothing if the request cannot be satisfied entirely */
#define GW_PREFAULT 0x04u    /* allocate all pages at once, also with GW_FLOAT */
#define GW_LOCK 0x08u        /* lock pages in memory */
#define GW_SMALL_PAGES 0x10u /* no huge pages */
#define GW_COLOURED 0x20u    /* consecutive pages have consecutive cache colours */

/* ---- The machine: nodes with processors and memory. */

#define GW_HOST 1    /* one computer; its kernel places threads and pages */
#define GW_CLUSTER 2 /* several nodes under `gondwana run` */

int gw_kind(void);

/* Bytes in a page: the unit of placement. */
size_t gw_page_size(void);

/* Returns the number of nodes; writes the numbers of at most `room` of them, in ascending order. */
int gw_nodes(int *nodes, int room);

/* Bytes of memory of a node, and how many of them are available. Either pointer may be NULL. */
int gw_node_memory(int node, uint64_t *total, uint64_t *available);

/* Distance of the memory of node `to` from node `from`: 10 is local. */
int gw_distance(int from, int to);

int gw_node_of_processor(int processor);

/* The node on which the calling thread is running; writes the processor unless the pointer is NULL. */
int gw_here(int *processor);

/* ---- Resource sets: processors, and the memory of nodes. */

typedef struct gw_rset gw_rset;

gw_rset *gw_rset_all(void);         /* everything in the machine */
gw_rset *gw_rset_allowed(void);     /* what cpusets and affinity let this process use of it */
gw_rset *gw_rset_of_node(int node); /* the processors and the memory of a node */

/* "node:0-1", "cpu:0-7" (with the memory nearest to them), "proc:0-7|mem:0", "all", "none", names of sets; "a|b" union,
 * "a&b" intersection, "a-b" difference, parentheses. */
gw_rset *gw_rset_parse(const char *text);

/* The set as a text that gw_rset_parse reads, truncated to `room` bytes. Returns the length of the whole text, as snprintf
 * does. */
int gw_rset_text(const gw_rset *set, char *text, size_t room);

gw_rset *gw_rset_union(const gw_rset *a, const gw_rset *b);
gw_rset *gw_rset_intersection(const gw_rset *a, const gw_rset *b);
gw_rset *gw_rset_difference(const gw_rset *a, const gw_rset *b);

/* Return 1 or 0, or -1 on error. */
int gw_rset_contains(const gw_rset *outer, const gw_rset *inner);
int gw_rset_equal(const gw_rset *a, const gw_rset *b);
int gw_rset_is_empty(const gw_rset *set);

/* Return the number of processors, or nodes with memory, in the set; write the numbers of at most `room` of them. */
int gw_rset_processors(const gw_rset *set, int *processors, int room);
int gw_rset_memory(const gw_rset *set, int *nodes, int room);

/* Does nothing for NULL. */
int gw_rset_free(gw_rset *set);

/* Names a set, for all programs of the user and `gondwana rset`. Its parent must contain it; with parent NULL it is a
 * part of the machine. Flag: GW_EXCLUSIVE. */
int gw_rset_name(const char *name, const gw_rset *set, const char *parent, unsigned flags);

/* Removes a name. The set must have no parts. */
int gw_rset_forget(const char *name);

/* The names of the parts of a set, or of the machine (NULL), with '\n' after each. Truncates and returns as snprintf. */
int gw_rset_names(const char *parent, char *names, size_t room);

/* ---- Binding: the processors on which threads run, and the nodes of memory that they touch first. */

#define GW_THREAD 1  /* the calling thread */
#define GW_PROCESS 2 /* all threads of the program */

/* Threads inherit the binding of the thread that starts them. Flag: GW_STRICT. On a cluster threads stay on their node: a
 * set without processors of it fails with ENOTSUP, as does GW_PROCESS with less than the whole machine. */
int gw_bind(int whom, const gw_rset *set, unsigned flags);

/* The set that the system permits now; it may differ from the requested one. */
gw_rset *gw_binding(int whom);

/* As pthread_create, for a thread that is bound to the set before it calls `routine`. All functions for threads accept its
 * identifier. On a cluster it runs on the node of the set with the fewest threads. */
int gw_thread_create(pthread_t *thread, const pthread_attr_t *attributes, const gw_rset *set,
                     void *(*routine)(void *), void *argument);

/* ---- Memory. */

#define GW_FLOAT 1   /* the system places each page in the set, at its first touch */
#define GW_LOCAL 2   /* on the node of the calling thread, or the nearest node of the set */
#define GW_REMOTE 3  /* on another node of the set: to measure the cost of distance */
#define GW_STRIPED 4 /* `stride` pages on one node of the set, as many on the next and so on, cyclically */
#define GW_BLOCK 5   /* contiguous parts of equal size, one for each node of the set */

/* Zeroed memory that begins at a page boundary. `stride` is 0 except with GW_STRIPED.
 * Flags: GW_PREFAULT, GW_LOCK, GW_SMALL_PAGES, GW_COLOURED, GW_STRICT. */
void *gw_alloc(size_t bytes, const gw_rset *set, int policy, size_t stride, unsigned flags);

/* Does nothing for NULL. */
int gw_free(void *memory);

/* A page that was never touched, or is swapped out. On a cluster, pages with a policy have a home before they are touched. */
#define GW_NOWHERE (-1)
#define GW_ANY (-2)     /* a page that the system places */

/* Returns the number of pages of a range of any memory; writes the actual nodes of at most `room` of them. */
long gw_where(const void *start, size_t bytes, int *nodes, size_t room);

/* Returns the number of pages of a block from gw_alloc; writes the requested nodes of at most `room` of them. */
long gw_asked(const void *memory, int *nodes, size_t room);

/* The number of pages of a block from gw_alloc that are on other nodes than requested. */
long gw_misplaced(const void *memory);

/* ---- The monitor: transactions between the nodes of a run. On one computer the hardware keeps memory coherent and reports
 * no transactions: the functions fail with ENOTSUP. */

/* Starts to record the run in a file on the launcher's computer, as `gondwana monitor` does. All nodes record when it
 * returns. */
int gw_monitor_start(const char *file);
/* Ends the recording. */
int gw_monitor_stop(void);

/* Kinds of transactions, to be combined with |. */
#define GW_READ 0x0001u         /* a page fetched for a read, that the node had lost to a writer */
#define GW_WRITE 0x0002u        /* the same for a write */
#define GW_COLD_READ 0x0004u    /* a page that the node never had */
#define GW_COLD_WRITE 0x0008u
#define GW_EXCESS_READ 0x0010u  /* a page that the node had, and did not lose to a writer */
#define GW_EXCESS_WRITE 0x0020u
#define GW_AHEAD 0x0040u        /* a prefetched page: it came along with another */
#define GW_UPGRADE 0x0080u      /* the first write to a page that the node had for reading */
#define GW_DIFF 0x0100u         /* written bytes that went to the home of their page */
#define GW_NOTICE 0x0200u       /* a write notice: another node has written the page */
#define GW_INVALIDATION 0x0400u /* a copy given up for a writer */
#define GW_RECALL 0x0800u       /* a page that this node had alone, and that another node requested */
#define GW_LOCK_HAND_OFF 0x1000u
#define GW_FETCHES 0x003fu /* all fetches that a thread waits for */

#define GW_OUT 1u /* caused by this node */
#define GW_IN 2u  /* caused by another node */

/* A separate thread calls it on the node that set the filter, some hundredths of a second after a node's counter of the
 * unit at this address has reached the threshold. It may read counters. */
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
    int repeated;                  /* raise an event at each multiple of the threshold */
    int descriptor;                /* an eventfd of this node that a reached threshold signals; -1 is none */
    gw_monitor_callback *callback; /* NULL is none */
    void *argument;
} gw_filter;

/* Sets a filter on all nodes; each counts its own transactions. Returns its number, which any thread may use. */
int gw_monitor_filter(const gw_filter *filter);
int gw_monitor_remove(int filter);

/* Return the number of counters that the filter has on each node; write the counts of at most `room` of them: the sums over
 * all nodes, or those of one node. */
long gw_monitor_read(int filter, uint64_t *counters, size_t room);
long gw_monitor_read_node(int filter, int node, uint64_t *counters, size_t room);

/* Starts a secondary counter, which counts what these filters count of these kinds (0: all); returns its number. */
int gw_monitor_shadow(const int *filters, size_t count, unsigned kinds);
int gw_monitor_secondary(int secondary, uint64_t *counted);
int gw_monitor_secondary_node(int secondary, int node, uint64_t *counted);
int gw_monitor_unshadow(int secondary);

/* The name that reports use for a range of shared addresses. */
int gw_monitor_name(const void *start, size_t bytes, const char *name);

#ifdef __cplusplus
}
#endif

#endif
