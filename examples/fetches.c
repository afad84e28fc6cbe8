/* How many pages of an array come from other nodes: one filter is set, each node counts for itself what its thread fetches, and
 * the first thread reads the counters of all.
 *
 *   cc fetches.c $(pkg-config --cflags --libs gondwana) -o fetches */
#include <gondwana.h>
#include <stdio.h>
#include <string.h>

#define MOST_NODES 256
#define PAGES 24

static char *array;

static void *look(void *argument)
{
    long *sum = (long *)argument;
    for (size_t i = 0; i < PAGES; i++)
        *sum += array[i * gw_page_size()];
    return NULL;
}

/* What the counters of a filter have counted, on one node or, with GW_ANY, on all. */
static long fetched(int filter, int node)
{
    uint64_t counters[PAGES], all = 0;
    if (node == GW_ANY)
        gw_monitor_read(filter, counters, PAGES);
    else
        gw_monitor_read_node(filter, node, counters, PAGES);
    for (int i = 0; i < PAGES; i++)
        all += counters[i];
    return (long)all;
}

int main(void)
{
    static long sums[MOST_NODES];
    int nodes[MOST_NODES], count = gw_nodes(nodes, MOST_NODES);
    gw_rset *all = gw_rset_allowed();
    gw_filter filter;
    array = (char *)gw_alloc(PAGES * gw_page_size(), all, GW_STRIPED, 1, 0);
    if (!array) {
        fprintf(stderr, "fetches: %s\n", gw_error_message());
        return 1;
    }
    for (size_t i = 0; i < PAGES; i++)
        array[i * gw_page_size()] = 1;
    memset(&filter, 0, sizeof filter);
    filter.start = array;
    filter.bytes = PAGES * gw_page_size();
    filter.unit = gw_page_size();
    filter.kinds = GW_FETCHES | GW_AHEAD;
    filter.directions = GW_OUT;
    filter.first = -1;
    filter.descriptor = -1;
    int number = gw_monitor_filter(&filter);
    if (number < 0)
        printf("nothing is counted: %s\n", gw_error_message());
    for (int i = 0; i < count; i++) {
        gw_rset *set = gw_rset_of_node(nodes[i]);
        /* Some nodes have memory and no processors. */
        if (gw_rset_processors(set, NULL, 0) > 0) {
            pthread_t thread;
            if (gw_thread_create(&thread, NULL, set, look, &sums[i])) {
                fprintf(stderr, "fetches: %s\n", gw_error_message());
                return 1;
            }
            pthread_join(thread, NULL);
            printf("node %d: sum %ld", nodes[i], sums[i]);
            if (number >= 0)
                printf(", %ld of %d pages came from other nodes", fetched(number, nodes[i]), PAGES);
            putchar('\n');
        }
        gw_rset_free(set);
    }
    if (number >= 0) {
        printf("all nodes: %ld pages\n", fetched(number, GW_ANY));
        gw_monitor_remove(number);
    }
    gw_free(array);
    gw_rset_free(all);
    return 0;
}
