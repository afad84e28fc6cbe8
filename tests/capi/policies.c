/*
 * Every policy, page by page, as asked for, as Gondwana finds it and as the kernel says.
 *
 *   policies             in all that this process may use
 *   policies forbidden   in the whole machine, of which a cpuset forbids a part: prints what came of it
 */
#define _GNU_SOURCE
#include "check.h"

#define PAGES 101
#define BYTES (PAGES * page_size - 7)

static size_t page_size;
static int nodes[MOST_NODES], count; /* of the set */

static int striped(size_t page, size_t stride)
{
    return nodes[page / stride % (size_t)count];
}

static int block(size_t page, size_t stride)
{
    (void)stride;
    return nodes[page * (size_t)count / PAGES];
}

static int local(size_t page, size_t stride)
{
    int here = gw_here(NULL), nearest = nodes[0];
    (void)page, (void)stride;
    for (int i = 1; i < count; i++)
        if (gw_distance(here, nodes[i]) < gw_distance(here, nearest))
            nearest = nodes[i];
    return nearest;
}

/* The first node after this one. */
static int distant(size_t page, size_t stride)
{
    int here = gw_here(NULL);
    (void)page, (void)stride;
    for (int i = 0; i < count; i++)
        if (nodes[i] > here)
            return nodes[i];
    return nodes[0];
}

static void pages_are_where_they_should_be(const gw_rset *set, int policy, size_t stride, unsigned flags,
                                           int (*wanted)(size_t, size_t))
{
    int asked[PAGES + 1], found[PAGES + 1];
    char *memory = gw_alloc(BYTES, set, policy, stride, flags);
    CHECK(memory && (uintptr_t)memory % page_size == 0);
    /* Without privileges little memory can be locked. */
    CHECK(*gw_remark() == 0 ||
          (flags == GW_LOCK && strstr(gw_remark(), on_cluster() ? "cannot be locked" : "ulimit -l")));
    CHECK(gw_asked(memory, asked, PAGES + 1) == PAGES);
    CHECK(gw_where(memory, BYTES, found, PAGES + 1) == PAGES);
    for (size_t page = 0; page < PAGES; page++) {
        int node = wanted(page, stride);
        CHECK(asked[page] == node && found[page] == node);
        CHECK(kernel_node(memory + page * page_size) == node);
    }
    CHECK(gw_misplaced(memory) == 0 && *gw_remark() == 0);
    for (size_t byte = 0; byte < BYTES; byte++)
        CHECK(memory[byte] == 0);
    memset(memory, 7, PAGES * page_size);
    CHECK(gw_free(memory) == 0);
}

static void every_policy_keeps_its_word(const gw_rset *set)
{
    count = gw_rset_memory(set, nodes, MOST_NODES);
    for (size_t stride = 1; stride < 4 * PAGES; stride *= 3)
        pages_are_where_they_should_be(set, GW_STRIPED, stride, 0, striped);
    pages_are_where_they_should_be(set, GW_STRIPED, SIZE_MAX, 0, striped);
    pages_are_where_they_should_be(set, GW_BLOCK, 0, GW_STRICT, block);
    pages_are_where_they_should_be(set, GW_BLOCK, 0, GW_PREFAULT | GW_SMALL_PAGES, block);
    pages_are_where_they_should_be(set, GW_LOCAL, 0, GW_LOCK, local);
    if (count > 1)
        pages_are_where_they_should_be(set, GW_REMOTE, 0, GW_STRICT, distant);
}

static void floating_pages_stay_in_the_set(const gw_rset *set)
{
    int found[PAGES], asked[PAGES], memory_nodes[MOST_NODES];
    int of_set = gw_rset_memory(set, memory_nodes, MOST_NODES);
    char *memory = gw_alloc(BYTES, set, GW_FLOAT, 0, GW_STRICT);
    CHECK(memory);
    /* In a run, memory that was used before has been cleared, and the pages of a set have homes. */
    CHECK(gw_where(memory, BYTES, found, PAGES) == PAGES && (on_cluster() || found[0] == GW_NOWHERE));
    memset(memory, 1, BYTES);
    CHECK(gw_where(memory, BYTES, found, PAGES) == PAGES && gw_asked(memory, asked, PAGES) == PAGES);
    for (int page = 0; page < PAGES; page++) {
        int inside = 0;
        for (int i = 0; i < of_set; i++)
            inside |= memory_nodes[i] == found[page];
        CHECK(inside && asked[page] == GW_ANY);
    }
    CHECK(gw_misplaced(memory) == 0);
    CHECK(gw_free(memory) == 0);
}

static void a_range_is_its_pages(const gw_rset *set)
{
    int found[3] = {7, 7, 7};
    char *memory = gw_alloc(3 * page_size, set, GW_LOCAL, 0, 0);
    CHECK(memory);
    CHECK(gw_where(memory + 1, 1, NULL, 0) == 1);
    CHECK(gw_where(memory + page_size - 1, 2, found, 1) == 2 && found[0] >= 0 && found[1] == 7);
    CHECK(gw_where(memory + 1, 2 * page_size, found, 3) == 3 && found[2] >= 0);
    CHECK(gw_free(memory) == 0);
}

/* Either a policy is kept, with the colours, or a remark says why not. */
static void coloured_memory_is_placed_too(const gw_rset *set)
{
    char *memory = gw_alloc(BYTES, set, GW_LOCAL, 0, GW_COLOURED);
    CHECK(memory && gw_misplaced(memory) == 0);
    CHECK(gw_free(memory) == 0);
}

static int forbidden(void)
{
    gw_rset *all = gw_rset_all();
    char *memory = gw_alloc(BYTES, all, GW_STRIPED, 1, 0);
    CHECK(memory);
    printf("%s\n", gw_remark());
    printf("%ld pages misplaced: %s\n", gw_misplaced(memory), gw_remark());
    CHECK(gw_free(memory) == 0);
    FAILS(gw_alloc(BYTES, all, GW_STRIPED, 1, GW_STRICT), ENOTSUP, "of 25 pages asked for");
    gw_rset_free(all);
    return 0;
}

int main(int argc, char **argv)
{
    page_size = gw_page_size();
    if (argc > 1 && strcmp(argv[1], "forbidden") == 0)
        return forbidden();
    gw_rset *set = gw_rset_allowed();
    CHECK(set);
    every_policy_keeps_its_word(set);
    floating_pages_stay_in_the_set(set);
    a_range_is_its_pages(set);
    coloured_memory_is_placed_too(set);
    int all[MOST_NODES], of_all = gw_rset_memory(set, all, MOST_NODES);
    for (int i = 0; i < of_all; i++) {
        char text[16];
        sprintf(text, "mem:%d", all[i]);
        gw_rset *one = parsed(text);
        every_policy_keeps_its_word(one);
        floating_pages_stay_in_the_set(one);
        gw_rset_free(one);
    }
    printf("%d nodes\n", of_all);
    gw_rset_free(set);
    return 0;
}
