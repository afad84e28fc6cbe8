/* The calls of UnixWare 7 for CPU groups (CG): a CG is a node, an LWP is a thread. Link with -lgondwana_api.
 * Under `gondwana run` nodes are those of the run, the node of a page is its home, and threads can be bound to their own node
 * only; binding to another node, or the whole process to one node, fails with ENOTSUP. Numbers of threads are those of the
 * node's computer.
 *
 * Calls that fail return -1 and set errno; gw_error_message() of gondwana.h returns one sentence about the error. Each
 * function has a manual page. */
#ifndef GONDWANA_CG_H
#define GONDWANA_CG_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>

#if !defined __USE_XOPEN && !defined __USE_XOPEN2K8
#error "cg.h needs the types of X/Open: define _XOPEN_SOURCE as 700, or compile with -std=gnu11"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int cgid_t;
typedef int processorid_t;
typedef uint64_t memsize_t;
typedef char *caddr_t;

/* Selectors: what is online. */
#define CG_ONLINE 1
#define P_ONLINE 1

/* Instead of the number of a CG. */
#define CG_NONE ((cgid_t)-1)    /* none */
#define CG_CURRENT ((cgid_t)-2) /* the CG on which the process or LWP is running */
#define CG_QUERY ((cgid_t)-3)   /* query only */
#define CG_DEFAULT ((cgid_t)-4) /* the default binding of children */

/* The kind of an id; P_PID comes from the system. The number of an LWP is that of gettid(). In C++ an enumeration has
 * only its listed values, so the type is int. */
#ifdef __cplusplus
#define GONDWANA_IDTYPE int
#else
#define GONDWANA_IDTYPE idtype_t
#endif
#define P_LWPID ((GONDWANA_IDTYPE)0x100)

/* The calling process or LWP. */
#define P_MYID ((id_t)-1)

#define CGBIND_NOW 1  /* bind the process or LWP */
#define CGBIND_FORK 2 /* bind its children */

typedef struct cginfo {
    int cg_state;           /* CG_ONLINE */
    memsize_t cg_near_mem;  /* bytes of memory */
    memsize_t cg_far_cache; /* bytes of a cache for the memory of other CGs: always 0 */
    long cg_ncpus_config;   /* processors */
    long cg_ncpus_online;
} cginfo_t;

/* Writes all CGs and returns their number. The array must have room for all of them. */
int cg_ids(int selector, int ncgids, cgid_t *array);

/* Writes all processors of a CG and returns their number. The array must have room for all of them. */
int cg_processors(cgid_t cgid, int selector, int nprids, processorid_t *array);

int cg_info(cgid_t cgid, cginfo_t *infop);

/* Binds a process or LWP to the processors of a CG, or queries its binding; ocg and oflags, unless NULL, receive the binding
 * before the call. */
int cg_bind(GONDWANA_IDTYPE type, id_t id, cgid_t cg, int flags, cgid_t *ocg, int *oflags);

/* The CG on which a process or LWP is running. */
cgid_t cg_current(GONDWANA_IDTYPE type, id_t id);

/* The CG of each page of a range, or CG_NONE for a page that has no memory. */
int cg_memloc(caddr_t addr, size_t len, cgid_t *vec);

#ifdef __cplusplus
}
#endif

#endif
