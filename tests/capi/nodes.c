/*
 * What threads on one node make, threads on every other use and give back: sets, blocks, texts. Each thread is where it
 * was started, and counts the pages of its block.
 *
 *   nodes          prints what each found
 *   nodes keep     keeps the blocks, for whoever counts homes at the end
 */
#define _GNU_SOURCE
#include "check.h"

#define PAGES 120

struct worker {
    pthread_t thread;
    gw_rset *set;
    char *block, *inherited;
    gw_rset *inherited_set;
    int node, keeps;
    long at[MOST_NODES];
};

static gw_rset *all;
static int nodes[MOST_NODES], count;

static void *work(void *argument)
{
    struct worker *self = argument;
    size_t page = gw_page_size();
    int found[PAGES], here;
    CHECK(gw_here(&here) == self->node && gw_node_of_processor(here) == self->node);
    gw_rset *binding = gw_binding(GW_THREAD);
    CHECK(binding && gw_rset_contains(self->set, binding) == 1);
    gw_rset_free(binding);

    /* What another thread has made, on another node if there is one. */
    if (self->inherited) {
        CHECK(self->inherited[0] == 'a' && self->inherited[(PAGES - 1) * page] == 'z');
        CHECK(gw_misplaced(self->inherited) == 0 && gw_asked(self->inherited, found, PAGES) == PAGES);
        CHECK(found[0] == nodes[0] && found[1] == nodes[1 % count]);
        CHECK(gw_rset_contains(all, self->inherited_set) == 1);
        CHECK(gw_rset_free(self->inherited_set) == 0);
        if (!self->keeps) {
            CHECK(gw_free(self->inherited) == 0);
            REFUSES(gw_free(self->inherited), EINVAL, "no memory from gw_alloc");
        }
    }

    self->block = gw_alloc(PAGES * page, all, GW_STRIPED, 1, GW_PREFAULT | GW_STRICT);
    CHECK(self->block);
    for (size_t byte = 0; byte < PAGES * page; byte++)
        CHECK(self->block[byte] == 0);
    CHECK(gw_where(self->block, PAGES * page, found, PAGES) == PAGES);
    for (int i = 0; i < PAGES; i++) {
        CHECK(found[i] == nodes[i % count]);
        self->at[found[i]]++;
    }
    self->block[0] = 'a';
    self->block[(PAGES - 1) * page] = 'z';
    pthread_exit(self);
}

int main(int argc, char **argv)
{
    static struct worker workers[2 * MOST_NODES];
    (void)argv;
    all = gw_rset_all();
    count = gw_nodes(nodes, MOST_NODES);
    CHECK(all && count > 0);
    for (int i = 0; i < 2 * count; i++) {
        struct worker *self = &workers[i];
        void *result;
        self->node = nodes[i % count];
        self->set = gw_rset_of_node(self->node);
        self->keeps = argc > 1;
        if (i > 0) {
            self->inherited = workers[i - 1].block;
            self->inherited_set = gw_rset_union(workers[i - 1].set, self->set);
        }
        CHECK(gw_thread_create(&self->thread, NULL, self->set, work, self) == 0 && *gw_remark() == 0);
        CHECK(pthread_join(self->thread, &result) == 0 && result == self);
        printf("node %d:", self->node);
        for (int node = 0; node < count; node++)
            printf(" %ld", self->at[nodes[node]]);
        printf("\n");
    }
    if (argc == 1)
        CHECK(gw_free(workers[2 * count - 1].block) == 0);
    for (int i = 0; i < 2 * count; i++)
        gw_rset_free(workers[i].set);
    gw_rset_free(all);
    return 0;
}
