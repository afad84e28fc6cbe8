/* Threads in sets, as the kernel reports them: where they run, and where their memory comes from. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

static gw_rset *allowed;

/* The node of a page that this thread touches first. */
static int node_of_fresh_page(void)
{
    size_t bytes = gw_page_size();
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    *page = 1;
    int node = kernel_node(page);
    CHECK(munmap(page, bytes) == 0);
    return node;
}

static int has_node(const gw_rset *set, int node)
{
    int nodes[MOST_NODES], count = gw_rset_memory(set, nodes, MOST_NODES);
    for (int i = 0; i < count; i++)
        if (nodes[i] == node)
            return 1;
    return 0;
}

/* The calling thread is in the set, and nowhere else. */
static void *is_inside(void *set)
{
    CHECK(kernel_runs_on(0, set) && kernel_allocates_on(set));
    CHECK(has_node(set, node_of_fresh_page()));
    gw_rset *binding = gw_binding(GW_THREAD);
    CHECK(binding && gw_rset_contains(set, binding) == 1 && !gw_rset_is_empty(binding));
    /* Threads of a run stay on their node, whatever else is in the set. */
    CHECK(on_cluster() || gw_rset_equal(binding, set) == 1);
    gw_rset_free(binding);
    return set;
}

static void a_thread_is_bound(gw_rset *set)
{
    if (on_cluster() && !has_node(set, gw_here(NULL))) {
        REFUSES(gw_bind(GW_THREAD, set, 0), ENOTSUP, "threads stay on their node: this one is on node 0");
        is_inside(allowed);
        return;
    }
    CHECK(gw_bind(GW_THREAD, set, GW_STRICT) == 0 && *gw_remark() == 0);
    is_inside(set);
    int node = gw_here(NULL), processors[1];
    CHECK(gw_rset_processors(set, processors, 1) > 0 && node == gw_node_of_processor(processors[0]));
    CHECK(gw_bind(GW_THREAD, allowed, 0) == 0);
    is_inside(allowed);
}

static void a_new_thread_is_in_its_set(gw_rset *set)
{
    pthread_t thread;
    void *result;
    CHECK(gw_thread_create(&thread, NULL, set, is_inside, set) == 0 && *gw_remark() == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == set);
    /* The one that has started it stays where it was. */
    is_inside(allowed);
}

static pthread_barrier_t meeting;
static pid_t other;

static void *wait_for_the_end(void *argument)
{
    other = gettid();
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return argument;
}

/* The kernel lets nobody change the policy for the memory of another thread: that is said. */
static void a_process_is_bound(gw_rset *set)
{
    pthread_t thread;
    if (on_cluster()) {
        REFUSES(gw_bind(GW_PROCESS, set, 0), ENOTSUP, "stay on their nodes");
        CHECK(gw_bind(GW_PROCESS, allowed, 0) == 0);
        gw_rset *binding = gw_binding(GW_PROCESS);
        CHECK(binding && gw_rset_equal(binding, allowed) == 1);
        gw_rset_free(binding);
        return;
    }
    pthread_barrier_init(&meeting, NULL, 2);
    CHECK(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0);
    pthread_barrier_wait(&meeting);
    REFUSES(gw_bind(GW_PROCESS, set, GW_STRICT), ENOTSUP, "other threads run already (1)");
    CHECK(kernel_runs_on(other, allowed));
    is_inside(allowed);
    CHECK(gw_bind(GW_PROCESS, set, 0) == 0 && strstr(gw_remark(), "other threads run already (1)"));
    is_inside(set);
    CHECK(kernel_runs_on(other, set));
    gw_rset *binding = gw_binding(GW_PROCESS);
    CHECK(binding && gw_rset_equal(binding, set) == 1);
    gw_rset_free(binding);
    CHECK(gw_bind(GW_PROCESS, allowed, 0) == 0);
    pthread_barrier_wait(&meeting);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(gw_bind(GW_PROCESS, allowed, GW_STRICT) == 0 && *gw_remark() == 0);
}

static void *leave(void *argument)
{
    pthread_exit(argument);
}

static void threads_have_attributes_and_may_leave(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    void *result;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 1 << 20) == 0);
    CHECK(gw_thread_create(&thread, &attributes, allowed, leave, &result) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == &result);
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    int nodes[MOST_NODES], count = gw_nodes(nodes, MOST_NODES), inhabited = 0;
    allowed = gw_rset_allowed();
    CHECK(allowed);
    for (int i = 0; i < count; i++) {
        gw_rset *node = gw_rset_of_node(nodes[i]);
        CHECK(node);
        if (gw_rset_processors(node, NULL, 0) == 0) {
            REFUSES(gw_bind(GW_THREAD, node, 0), EINVAL, "has no processors to run on");
        } else {
            a_thread_is_bound(node);
            a_new_thread_is_in_its_set(node);
            a_process_is_bound(node);
            inhabited++;
        }
        gw_rset_free(node);
    }
    threads_have_attributes_and_may_leave();
    gw_rset_free(allowed);
    printf("%d of %d nodes\n", inhabited, count);
    return 0;
}
