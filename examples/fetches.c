/* How many pages of an array come from other nodes: each node counts for itself what its thread fetches.
 *
 *   cc fetches.c $(pkg-config --cflags --libs gondwana) -o fetches */
#include <gondwana.h>
#include <stdio.h>
#include <string.h>

#define MOST_NODES 256
#define PAGES 24

static char *array;

struct reader {
    pthread_t thread;
    int node;
    long sum;
};

static void *look(void *argument)
{
    struct reader *self = (struct reader *)argument;
    uint64_t counters[PAGES], fetched = 0;
    gw_filter filter;
    memset(&filter, 0, sizeof filter);
    filter.start = array;
    filter.bytes = PAGES * gw_page_size();
    filter.unit = gw_page_size();
    filter.kinds = GW_FETCHES | GW_AHEAD;
    filter.directions = GW_OUT;
    filter.first = -1;
    filter.descriptor = -1;
    int number = gw_monitor_filter(&filter);
    if (number < 0) {
        printf("node %d: %s\n", self->node, gw_error_message());
        return NULL;
    }
    for (size_t i = 0; i < PAGES; i++)
        self->sum += array[i * gw_page_size()];
    gw_monitor_read(number, counters, PAGES);
    for (int i = 0; i < PAGES; i++)
        fetched += counters[i];
    gw_monitor_remove(number);
    printf("node %d: sum %ld, %d of %d pages came from other nodes\n", self->node, self->sum, (int)fetched, PAGES);
    return NULL;
}

int main(void)
{
    static struct reader readers[MOST_NODES];
    int nodes[MOST_NODES], count = gw_nodes(nodes, MOST_NODES);
    gw_rset *all = gw_rset_allowed();
    array = (char *)gw_alloc(PAGES * gw_page_size(), all, GW_STRIPED, 1, 0);
    if (!array) {
        fprintf(stderr, "fetches: %s\n", gw_error_message());
        return 1;
    }
    for (size_t i = 0; i < PAGES; i++)
        array[i * gw_page_size()] = 1;
    for (int i = 0; i < count; i++) {
        struct reader *reader = &readers[i];
        gw_rset *set = gw_rset_of_node(nodes[i]);
        reader->node = nodes[i];
        /* Some nodes have memory and no processors. */
        if (gw_rset_processors(set, NULL, 0) > 0) {
            if (gw_thread_create(&reader->thread, NULL, set, look, reader)) {
                fprintf(stderr, "fetches: %s\n", gw_error_message());
                return 1;
            }
            pthread_join(reader->thread, NULL);
        }
        gw_rset_free(set);
    }
    gw_free(array);
    gw_rset_free(all);
    return 0;
}
