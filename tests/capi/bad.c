/* Input that makes no sense: each call says what is wrong, and nothing is lost. To be run with a tool that watches
 * memory. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

static gw_rset *all, *none;

static void texts_that_are_no_sets(void)
{
    FAILS(gw_rset_parse(NULL), EINVAL, "the text of the set is NULL");
    FAILS(gw_rset_parse(""), EINVAL, "at character 1 of \"\"");
    FAILS(gw_rset_parse("nonsense"), EINVAL, "no set named 'nonsense', at character 1 of \"nonsense\"");
    FAILS(gw_rset_parse("node:0|node:250"), EINVAL, "no node 250");
    FAILS(gw_rset_parse("node:0|node:250"), EINVAL, "at character 13 of \"node:0|node:250\"");
    FAILS(gw_rset_parse("cpu:0-99999999999999999999"), EINVAL, "beyond the last possible one");
    FAILS(gw_rset_parse("mem:0)"), EINVAL, "closes none, at character 6");
    FAILS(gw_rset_parse("node:0 |\n"), EINVAL, "character");
    FAILS(gw_rset_parse("mem:\xff"), EINVAL, "no UTF-8 from byte 5 on");
    char *longest = malloc(1 << 17);
    memset(longest, '(', 1 << 17);
    longest[(1 << 17) - 1] = 0;
    FAILS(gw_rset_parse(longest), EINVAL, "longer than 65536 bytes");
    longest[60000] = 0;
    FAILS(gw_rset_parse(longest), EINVAL, "parenthes");
    free(longest);
    FAILS(gw_rset_of_node(-1), EINVAL, "no node -1");
    FAILS(gw_rset_of_node(256), EINVAL, "no node 256");
    FAILS(gw_rset_of_node(1 << 20), EINVAL, "no node 1048576");
}

/* Whatever is no set: NULL, something else, a set that was freed. */
static void handles_that_are_no_sets(void)
{
    gw_rset *freed = gw_rset_all();
    CHECK(gw_rset_free(freed) == 0);
    static char zeros[1024];
    gw_rset *strange[] = {NULL, freed, (gw_rset *)zeros, (gw_rset *)(zeros + 1)};
    for (int i = 0; i < 4; i++) {
        gw_rset *no_set = strange[i];
        const char *why = no_set ? "is no resource set, or one that was freed" : "is NULL";
        pthread_t thread;
        int number;
        char text[8];
        FAILS(gw_rset_union(no_set, all), EINVAL, why);
        FAILS(gw_rset_intersection(all, no_set), EINVAL, "the second set");
        FAILS(gw_rset_difference(no_set, all), EINVAL, "the first set");
        REFUSES(gw_rset_contains(all, no_set), EINVAL, why);
        REFUSES(gw_rset_equal(no_set, all), EINVAL, why);
        REFUSES(gw_rset_is_empty(no_set), EINVAL, why);
        REFUSES(gw_rset_processors(no_set, &number, 1), EINVAL, why);
        REFUSES(gw_rset_memory(no_set, &number, 1), EINVAL, why);
        REFUSES(gw_rset_text(no_set, text, sizeof text), EINVAL, why);
        REFUSES(gw_rset_name("name", no_set, NULL, 0), EINVAL, why);
        REFUSES(gw_bind(GW_THREAD, no_set, 0), EINVAL, why);
        REFUSES(gw_thread_create(&thread, NULL, no_set, (void *(*)(void *))abort, NULL), EINVAL, why);
        FAILS(gw_alloc(1, no_set, GW_LOCAL, 0, 0), EINVAL, why);
        if (no_set)
            REFUSES(gw_rset_free(no_set), EINVAL, why);
    }
    CHECK(gw_rset_free(NULL) == 0);
}

static void numbers_without_meaning(void)
{
    int number;
    REFUSES(gw_nodes(&number, -1), EINVAL, "the room is -1");
    REFUSES(gw_nodes(NULL, 1), EINVAL, "the array is NULL");
    REFUSES(gw_rset_processors(all, NULL, 1), EINVAL, "the array is NULL");
    REFUSES(gw_rset_memory(all, &number, -1), EINVAL, "the room is -1");
    REFUSES(gw_rset_text(all, NULL, 1), EINVAL, "the text is NULL");
    REFUSES(gw_node_memory(99, NULL, NULL), EINVAL, "no node 99");
    REFUSES(gw_distance(0, 99), EINVAL, "no node 99");
    REFUSES(gw_distance(-1, 0), EINVAL, "no node -1");
    REFUSES(gw_node_of_processor(-1), EINVAL, "no processor -1");
    REFUSES(gw_node_of_processor(1 << 20), EINVAL, "no processor 1048576");
    REFUSES(gw_bind(0, all, 0), EINVAL, "0 is neither GW_THREAD nor GW_PROCESS");
    REFUSES(gw_bind(GW_THREAD, all, GW_LOCK), EINVAL, "the flags 0x8");
    FAILS(gw_binding(3), EINVAL, "3 is neither");
    REFUSES(gw_rset_name(NULL, all, NULL, 0), EINVAL, "the name is NULL");
    REFUSES(gw_rset_forget(NULL), EINVAL, "the name is NULL");
}

static void threads_that_cannot_be(void)
{
    pthread_t thread;
    gw_rset *processors = parsed("proc:0"), *memory = parsed("mem:0");
    void *(*routine)(void *) = (void *(*)(void *))abort;
    REFUSES(gw_bind(GW_THREAD, none, 0), EINVAL, "none has no processors");
    REFUSES(gw_bind(GW_THREAD, processors, 0), EINVAL, "proc:0 has no memory");
    REFUSES(gw_bind(GW_PROCESS, memory, 0), EINVAL, "mem:0 has no processors");
    REFUSES(gw_thread_create(&thread, NULL, memory, routine, NULL), EINVAL, "mem:0 has no processors");
    REFUSES(gw_thread_create(&thread, NULL, all, NULL, NULL), EINVAL, "the start routine is NULL");
    REFUSES(gw_thread_create(NULL, NULL, all, routine, NULL), EINVAL, "is NULL");
    /* A stack without room for it, which pthread_create itself refuses. */
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)1 << 46) == 0);
    REFUSES(gw_thread_create(&thread, &attributes, all, routine, NULL), EAGAIN, "no thread can be started");
    pthread_attr_destroy(&attributes);
    gw_rset_free(processors), gw_rset_free(memory);
}

static void memory_that_cannot_be(void)
{
    gw_rset *processors = parsed("proc:0");
    FAILS(gw_alloc(0, all, GW_LOCAL, 0, 0), EINVAL, "0 bytes");
    FAILS(gw_alloc(1, all, 0, 0, 0), EINVAL, "no policy numbered 0");
    FAILS(gw_alloc(1, all, -7, 0, 0), EINVAL, "no policy numbered -7");
    FAILS(gw_alloc(1, all, GW_STRIPED, 0, 0), EINVAL, "the stride is 0");
    FAILS(gw_alloc(1, all, GW_BLOCK, 3, 0), EINVAL, "the stride is 3");
    FAILS(gw_alloc(1, all, GW_LOCAL, 0, 0x80000000u), EINVAL, "the flags 0x80000000");
    FAILS(gw_alloc(1, all, GW_LOCAL, 0, GW_EXCLUSIVE), EINVAL, "the flags 0x1");
    FAILS(gw_alloc(1, none, GW_LOCAL, 0, 0), EINVAL, "none has no memory");
    FAILS(gw_alloc(1, processors, GW_STRIPED, 1, 0), EINVAL, "proc:0 has no memory");
    FAILS(gw_alloc(SIZE_MAX, all, GW_LOCAL, 0, 0), ENOMEM, "no room for");
    FAILS(gw_alloc(SIZE_MAX - gw_page_size(), all, GW_LOCAL, 0, 0), ENOMEM, "no room for");
    FAILS(gw_alloc((size_t)1 << 60, all, GW_BLOCK, 0, 0), ENOMEM, "no room for");
    gw_rset_free(processors);
}

static void memory_of_others(void)
{
    char *memory = gw_alloc(3 * gw_page_size(), all, GW_LOCAL, 0, 0), *copy, outside;
    int node;
    CHECK(memory);
    copy = mmap(NULL, 2 * gw_page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, memory - gw_page_size(), gw_page_size());
    void *strange[] = {memory + 1, memory + gw_page_size(), copy + gw_page_size(), &outside, (void *)8,
                       (void *)gw_page_size(), (void *)(64 * gw_page_size()), (void *)(UINTPTR_MAX & ~4095ul)};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        REFUSES(gw_free(strange[i]), EINVAL, "no memory from gw_alloc");
        REFUSES(gw_asked(strange[i], &node, 1), EINVAL, "no memory from gw_alloc");
        REFUSES(gw_misplaced(strange[i]), EINVAL, "no memory from gw_alloc");
    }
    CHECK(gw_free(memory) == 0);
    REFUSES(gw_free(memory), EINVAL, "no memory from gw_alloc, or memory that was freed");
    REFUSES(gw_asked(NULL, &node, 1), EINVAL, "NULL is no memory from gw_alloc");
    CHECK(gw_free(NULL) == 0);
    REFUSES(gw_where(copy, 0, &node, 1), EINVAL, "0 bytes");
    REFUSES(gw_where(copy, SIZE_MAX, &node, 1), EINVAL, "no range of memory");
    REFUSES(gw_where(copy, 1, NULL, 1), EINVAL, "the array is NULL");
    CHECK(gw_where(NULL, 1, &node, 1) == 1 && node == GW_NOWHERE);
    munmap(copy, 2 * gw_page_size());
}

static void errors_belong_to_their_thread(void)
{
    CHECK(gw_rset_parse("?") == NULL);
    char *before = strdup(gw_error_message());
    gw_rset *set = gw_rset_all();
    CHECK(set && strcmp(before, gw_error_message()) == 0);
    gw_rset_free(set);
    free(before);
}

/* Pages of addresses that this process has. */
static long mapped(void)
{
    long size;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &size) == 1);
    fclose(file);
    return size;
}

/* What the tools that watch `malloc` do not see. */
static void refused_memory_is_not_kept(void)
{
    long before = mapped();
    for (int i = 0; i < 64; i++) {
        void *memory = gw_alloc(1 << 20, all, GW_STRIPED, 1, 0);
        CHECK(memory && gw_free(memory) == 0);
        CHECK(gw_alloc(1 << 20, all, GW_STRIPED, 0, 0) == NULL);
    }
    CHECK(mapped() - before < 2 * 256);
}

int main(void)
{
    all = gw_rset_all();
    none = parsed("none");
    texts_that_are_no_sets();
    handles_that_are_no_sets();
    numbers_without_meaning();
    threads_that_cannot_be();
    memory_that_cannot_be();
    memory_of_others();
    errors_belong_to_their_thread();
    refused_memory_is_not_kept();
    gw_rset_free(all), gw_rset_free(none);
    puts("refused");
    return 0;
}
