/* A thread on each node with memory of its own near it: gw_thread_create is pthread_create with a set.
 *
 *   cc workers.c $(pkg-config --cflags --libs gondwana) -o workers */
#include <gondwana.h>
#include <stdio.h>

#define MOST_NODES 256
#define NUMBERS (1 << 18)

struct worker {
    pthread_t thread;
    gw_rset *set;
    int node, ran_on, memory_on;
    double sum;
};

static void *work(void *argument)
{
    struct worker *self = (struct worker *)argument;
    double *numbers = (double *)gw_alloc(NUMBERS * sizeof *numbers, self->set, GW_LOCAL, 0, 0);
    if (!numbers) {
        fprintf(stderr, "workers: %s\n", gw_error_message());
        return NULL;
    }
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 1.0 / (i + 1);
    for (int i = 0; i < NUMBERS; i++)
        self->sum += numbers[i];
    self->ran_on = gw_here(NULL);
    gw_where(numbers, 1, &self->memory_on, 1);
    gw_free(numbers);
    return self;
}

int main(void)
{
    static struct worker workers[MOST_NODES];
    int nodes[MOST_NODES], count = gw_nodes(nodes, MOST_NODES), started = 0;
    for (int i = 0; i < count; i++) {
        struct worker *worker = &workers[started];
        worker->node = nodes[i];
        worker->set = gw_rset_of_node(nodes[i]);
        /* Some nodes have memory and no processors, or the other way round. */
        if (gw_rset_processors(worker->set, NULL, 0) > 0 && gw_rset_memory(worker->set, NULL, 0) > 0) {
            if (gw_thread_create(&worker->thread, NULL, worker->set, work, worker)) {
                fprintf(stderr, "workers: %s\n", gw_error_message());
                return 1;
            }
            started++;
        } else {
            gw_rset_free(worker->set);
        }
    }
    for (int i = 0; i < started; i++) {
        struct worker *worker = &workers[i];
        pthread_join(worker->thread, NULL);
        printf("node %d: ran on %d, memory on %d, sum %.6f\n", worker->node, worker->ran_on, worker->memory_on,
               worker->sum);
        gw_rset_free(worker->set);
    }
    return 0;
}
