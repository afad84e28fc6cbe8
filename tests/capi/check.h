/* What the tests of the functions for C have in common: checks that say what is wrong, and what the kernel says by its
 * own calls, without Gondwana. On the nodes of a run the kernel knows nothing of this; the same questions then go to
 * Gondwana in other words. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <gondwana.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_NODES 64
#define MOST_PROCESSORS 1024

#define CHECK(condition)                                                                                            \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            fprintf(stderr, "%s:%d: %s (errno %d, error \"%s\", remark \"%s\")\n", __FILE__, __LINE__, #condition,  \
                    errno, gw_error_message(), gw_remark());                                                        \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

/* A call that must fail with this number, and with this in its message. */
#define FAILS(call, number, part)                                                                                   \
    do {                                                                                                            \
        errno = 0;                                                                                                  \
        CHECK(!(call));                                                                                             \
        CHECK(errno == (number));                                                                                   \
        CHECK(strstr(gw_error_message(), part));                                                                    \
    } while (0)

/* For calls that return -1. */
#define REFUSES(call, number, part) FAILS((call) != -1, number, part)

/* True on the nodes of a run. */
static inline int on_cluster(void)
{
    return gw_kind() == GW_CLUSTER;
}

/* The node of a page, as the kernel says. */
static inline int kernel_node(const void *page)
{
    int node = -1;
    if (on_cluster()) {
        CHECK(gw_where(page, 1, &node, 1) == 1);
        return node;
    }
    void *address = (void *)(uintptr_t)page;
    CHECK(syscall(SYS_move_pages, 0, 1UL, &address, NULL, &node, 0) == 0);
    return node;
}

/* True if the kernel lets a thread (0: this one) run on the processors of the set and no others. */
static inline int kernel_runs_on(pid_t thread, const gw_rset *set)
{
    cpu_set_t found, wanted;
    int processors[MOST_PROCESSORS];
    int count = gw_rset_processors(set, processors, MOST_PROCESSORS);
    if (on_cluster()) {
        int here, inside = 0;
        CHECK(gw_here(&here) == gw_node_of_processor(here));
        for (int i = 0; i < count; i++)
            inside |= processors[i] == here;
        return inside;
    }
    CPU_ZERO(&found);
    CPU_ZERO(&wanted);
    for (int i = 0; i < count; i++)
        CPU_SET(processors[i], &wanted);
    CHECK(sched_getaffinity(thread, sizeof found, &found) == 0);
    return CPU_EQUAL(&found, &wanted);
}

/* True if the kernel gives this thread memory from the nodes of the set and no others. */
static inline int kernel_allocates_on(const gw_rset *set)
{
    int mode, nodes[MOST_NODES], every = gw_nodes(NULL, 0);
    unsigned long mask[16] = {0}, wanted = 0;
    int count = gw_rset_memory(set, nodes, MOST_NODES);
    if (on_cluster())
        return count > 0;
    for (int i = 0; i < count; i++)
        wanted |= 1UL << nodes[i];
    CHECK(syscall(SYS_get_mempolicy, &mode, mask, sizeof mask * 8, NULL, 0) == 0);
    return count == every ? mode == MPOL_DEFAULT : mode == MPOL_BIND && mask[0] == wanted;
}

static inline gw_rset *parsed(const char *text)
{
    gw_rset *set = gw_rset_parse(text);
    CHECK(set);
    return set;
}

#endif
