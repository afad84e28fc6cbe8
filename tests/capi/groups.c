/* The cg_* calls, and what the kernel says to them. */
#define _GNU_SOURCE
#include "check.h"
#include <cg.h>
#include <signal.h>
#include <sys/mman.h>

static cgid_t ids[MOST_NODES];
static int count;

static void groups_are_the_nodes(void)
{
    int nodes[MOST_NODES];
    CHECK((count = cg_ids(CG_ONLINE, MOST_NODES, ids)) == gw_nodes(nodes, MOST_NODES));
    CHECK(memcmp(ids, nodes, (size_t)count * sizeof *ids) == 0);
    REFUSES(cg_ids(0, MOST_NODES, ids), EINVAL, "selector is 0");
    REFUSES(cg_ids(CG_ONLINE, count - 1, ids), ENOSPC, "room for");
    REFUSES(cg_ids(CG_ONLINE, -1, ids), ENOSPC, "room for -1");
    REFUSES(cg_ids(CG_ONLINE, MOST_NODES, NULL), EFAULT, "NULL");
}

static void groups_have_processors_and_memory(void)
{
    processorid_t processors[MOST_PROCESSORS];
    cginfo_t info;
    for (int i = 0; i < count; i++) {
        uint64_t total;
        int expected[MOST_PROCESSORS];
        gw_rset *node = gw_rset_of_node(ids[i]);
        int of_node = gw_rset_processors(node, expected, MOST_PROCESSORS);
        CHECK(cg_processors(ids[i], P_ONLINE, MOST_PROCESSORS, processors) == of_node);
        CHECK(memcmp(processors, expected, (size_t)of_node * sizeof *expected) == 0);
        CHECK(cg_info(ids[i], &info) == 0 && gw_node_memory(ids[i], &total, NULL) == 0);
        CHECK(info.cg_state == CG_ONLINE && info.cg_near_mem == total && info.cg_far_cache == 0);
        CHECK(info.cg_ncpus_config == of_node && info.cg_ncpus_online == of_node);
        if (of_node > 0)
            REFUSES(cg_processors(ids[i], P_ONLINE, of_node - 1, processors), ENOSPC, "room for");
        gw_rset_free(node);
    }
    CHECK(cg_info(CG_CURRENT, &info) == 0 && info.cg_ncpus_online > 0);
    CHECK(cg_processors(CG_CURRENT, P_ONLINE, MOST_PROCESSORS, processors) == info.cg_ncpus_online);
    REFUSES(cg_info(999, &info), EINVAL, "no node 999");
    REFUSES(cg_info(CG_NONE, &info), EINVAL, "no node -1");
    REFUSES(cg_info(ids[0], NULL), EFAULT, "NULL");
    REFUSES(cg_processors(999, P_ONLINE, 1, processors), EINVAL, "no node 999");
    REFUSES(cg_processors(ids[0], 77, 1, processors), EINVAL, "selector is 77");
}

/* The group of all processors, if it is one; processors that may be used are all that there are. */
static cgid_t unbound(void)
{
    int of_one = 0, holder = CG_NONE;
    for (int i = 0; i < count; i++) {
        cginfo_t info;
        CHECK(cg_info(ids[i], &info) == 0);
        of_one += info.cg_ncpus_online > 0;
        holder = info.cg_ncpus_online > 0 ? ids[i] : holder;
    }
    return of_one == 1 ? holder : CG_NONE;
}

/* A process or LWP goes from node to node and back; `thread` is the kernel's number for it. */
static void bound_from_group_to_group(idtype_t type, id_t id, pid_t thread)
{
    cgid_t before = unbound(), old = 77;
    gw_rset *all = gw_rset_all();
    int flags = 77;
    for (int i = 0; i < count; i++) {
        gw_rset *node = gw_rset_of_node(ids[i]);
        if (gw_rset_processors(node, NULL, 0) == 0) {
            REFUSES(cg_bind(type, id, ids[i], CGBIND_NOW, NULL, NULL), EINVAL, "has no processors");
        } else {
            CHECK(cg_bind(type, id, ids[i], i % 2 ? CGBIND_NOW : CGBIND_NOW | CGBIND_FORK, &old, &flags) == 0);
            CHECK(old == before && flags == (old == CG_NONE ? 0 : CGBIND_NOW | CGBIND_FORK));
            CHECK(kernel_runs_on(thread, node));
            before = ids[i];
            CHECK(cg_bind(type, id, CG_QUERY, 0, &old, NULL) == 0 && old == before);
            CHECK(cg_bind(type, id, CG_QUERY, 0, NULL, NULL) == 0 && kernel_runs_on(thread, node));
        }
        gw_rset_free(node);
    }
    CHECK(cg_bind(type, id, CG_DEFAULT, CGBIND_FORK, &old, NULL) == 0 && old == before);
    CHECK(cg_bind(type, id, CG_NONE, CGBIND_NOW, &old, NULL) == 0 && old == before);
    CHECK(kernel_runs_on(thread, all));
    CHECK(cg_bind(type, id, CG_QUERY, 0, &old, &flags) == 0 && old == unbound());
    gw_rset_free(all);
}

/* Threads of a run are bound to the group on which they are, and to no other. */
static void threads_stay_in_their_group(void)
{
    cgid_t old = 77, here = cg_current(P_LWPID, P_MYID);
    int flags = 77;
    CHECK(here == gw_here(NULL));
    for (int i = 0; i < count; i++) {
        REFUSES(cg_bind(P_PID, P_MYID, ids[i], CGBIND_NOW, NULL, NULL), ENOTSUP, "stay on their nodes");
        if (ids[i] != here)
            REFUSES(cg_bind(P_LWPID, P_MYID, ids[i], CGBIND_NOW, NULL, NULL), ENOTSUP, "threads stay on their node");
    }
    CHECK(cg_bind(P_LWPID, P_MYID, here, CGBIND_NOW, &old, &flags) == 0 && old == here);
    CHECK(cg_bind(P_LWPID, (id_t)gettid(), CG_NONE, CGBIND_NOW, &old, &flags) == 0 && old == here);
    CHECK(flags == (CGBIND_NOW | CGBIND_FORK));
    CHECK(cg_bind(P_PID, P_MYID, CG_NONE, CGBIND_NOW, &old, NULL) == 0 && old == CG_NONE);
    REFUSES(cg_bind(P_PID, 0x7fffffff, ids[0], CGBIND_NOW, NULL, NULL), ESRCH, "no process numbered");
    REFUSES(cg_bind(P_LWPID, 0x7fffffff, CG_QUERY, 0, NULL, NULL), ESRCH, "no thread numbered");
}

static void everybody_can_be_bound(void)
{
    if (on_cluster()) {
        threads_stay_in_their_group();
        return;
    }
    bound_from_group_to_group(P_PID, P_MYID, 0);
    bound_from_group_to_group(P_PID, (id_t)getpid(), 0);
    bound_from_group_to_group(P_LWPID, P_MYID, 0);
    bound_from_group_to_group(P_LWPID, (id_t)gettid(), 0);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    CHECK(child > 0);
    bound_from_group_to_group(P_PID, (id_t)child, child);
    CHECK(cg_current(P_PID, (id_t)child) >= 0);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    REFUSES(cg_bind(P_PID, (id_t)child, ids[0], CGBIND_NOW, NULL, NULL), ESRCH, "no process numbered");
    REFUSES(cg_current(P_PID, (id_t)child), ESRCH, "no process numbered");
    REFUSES(cg_bind(P_LWPID, 0x7fffffff, CG_QUERY, 0, NULL, NULL), ESRCH, "no thread numbered");
}

static void what_makes_no_sense_is_refused(void)
{
    REFUSES(cg_bind(P_PGID, P_MYID, CG_QUERY, 0, NULL, NULL), EINVAL, "neither P_PID nor P_LWPID");
    REFUSES(cg_bind(P_PID, 0, CG_QUERY, 0, NULL, NULL), EINVAL, "0 is no number of a process");
    REFUSES(cg_bind(P_PID, P_MYID, 999, CGBIND_NOW, NULL, NULL), EINVAL, "no node 999");
    REFUSES(cg_bind(P_PID, P_MYID, -77, CGBIND_NOW, NULL, NULL), EINVAL, "no node -77");
    REFUSES(cg_bind(P_PID, P_MYID, ids[0], 0, NULL, NULL), EINVAL, "flags 0x0");
    REFUSES(cg_bind(P_PID, P_MYID, ids[0], 8, NULL, NULL), EINVAL, "flags 0x8");
    REFUSES(cg_bind(P_PID, P_MYID, ids[0], CGBIND_FORK, NULL, NULL), ENOTSUP, "without CGBIND_NOW");
    REFUSES(cg_bind(P_PID, P_MYID, CG_DEFAULT, CGBIND_NOW, NULL, NULL), EINVAL, "CGBIND_FORK only");
    REFUSES(cg_current(P_PGID, P_MYID), EINVAL, "neither P_PID nor P_LWPID");
}

static void threads_know_where_they_are(void)
{
    for (int i = 0; i < count; i++)
        if (cg_bind(P_LWPID, P_MYID, ids[i], CGBIND_NOW, NULL, NULL) == 0) {
            CHECK(cg_current(P_LWPID, P_MYID) == ids[i]);
            CHECK(cg_current(P_LWPID, (id_t)gettid()) == ids[i] && cg_current(P_PID, P_MYID) == ids[i]);
            CHECK(cg_bind(P_LWPID, P_MYID, CG_NONE, CGBIND_NOW, NULL, NULL) == 0);
            CHECK(cg_bind(P_LWPID, P_MYID, CG_CURRENT, CGBIND_NOW, NULL, NULL) == 0);
            CHECK(cg_current(P_LWPID, P_MYID) >= 0);
            CHECK(cg_bind(P_LWPID, P_MYID, CG_NONE, CGBIND_NOW, NULL, NULL) == 0);
        }
}

static void pages_are_where_the_kernel_says(void)
{
    size_t page = gw_page_size(), pages = 1500;
    cgid_t *found = malloc((pages + 1) * sizeof *found);
    gw_rset *all = gw_rset_all();
    char *memory = gw_alloc(pages * page, all, GW_STRIPED, 2, 0);
    CHECK(found && memory);
    found[pages] = 77;
    CHECK(cg_memloc(memory, pages * page - 1, found) == 0 && found[pages] == 77);
    for (size_t i = 0; i < pages; i++)
        CHECK(found[i] == kernel_node(memory + i * page) && found[i] == ids[i / 2 % (size_t)count]);
    CHECK(gw_free(memory) == 0);

    char *untouched = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(untouched != MAP_FAILED);
    untouched[page] = 1;
    CHECK(*(volatile char *)(untouched + 2 * page) == 0); /* the page of zeros is nobody's */
    CHECK(cg_memloc(untouched, 3 * page, found) == 0);
    /* Unless a run maps memory that it has cleared because it was in use before. */
    CHECK((found[0] == CG_NONE || on_cluster()) && found[1] == kernel_node(untouched + page));
    CHECK(found[2] == (on_cluster() ? ids[0] : CG_NONE));
    REFUSES(cg_memloc(untouched + 1, page, found), EINVAL, "a page does not begin at");
    REFUSES(cg_memloc(untouched, 0, found), ENOMEM, "0 bytes");
    REFUSES(cg_memloc(untouched, SIZE_MAX, found), ENOMEM, "no range of memory");
    REFUSES(cg_memloc(untouched, page, NULL), EFAULT, "NULL");
    CHECK(munmap(untouched, 3 * page) == 0);
    /* What was unmapped keeps its home in a run. */
    CHECK(cg_memloc(untouched, 3 * page, found) == 0);
    CHECK(on_cluster() ? found[1] == ids[0] : found[0] == CG_NONE && found[1] == CG_NONE);
    gw_rset_free(all);
    free(found);
}

int main(void)
{
    groups_are_the_nodes();
    groups_have_processors_and_memory();
    everybody_can_be_bound();
    what_makes_no_sense_is_refused();
    threads_know_where_they_are();
    pages_are_where_the_kernel_says();
    printf("%d groups\n", count);
    return 0;
}
