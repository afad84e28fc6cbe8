/* Filters, secondary counters, thresholds and recordings. On one computer there is nothing to monitor. */
#define _GNU_SOURCE
#include "check.h"
#include <stdint.h>
#include <sys/eventfd.h>

enum { PAGES = 16 };

static char *first, *second, *third;
static int told;

/* What the callback has found. */
static struct { uint64_t count, sum; const void *address; int filter, node, argument; } heard;

static gw_filter about(const void *start)
{
    gw_filter filter = {0};
    filter.start = start;
    filter.bytes = PAGES * gw_page_size();
    filter.unit = gw_page_size();
    filter.kinds = GW_FETCHES | GW_AHEAD;
    filter.directions = GW_OUT;
    filter.first = -1;
    filter.descriptor = -1;
    return filter;
}

static uint64_t counted(int filter)
{
    uint64_t counters[PAGES], sum = 0;
    CHECK(gw_monitor_read(filter, counters, PAGES) == PAGES);
    for (int i = 0; i < PAGES; i++)
        sum += counters[i];
    return sum;
}

static void listen_to(int filter, const void *address, uint64_t count, void *argument)
{
    uint64_t one = 1, counters[PAGES];
    /* Another page of the array may be told of while the filter is being removed. */
    if (gw_monitor_read(filter, counters, PAGES) != PAGES) {
        CHECK(errno == ENOENT);
        return;
    }
    heard.count = count;
    heard.sum = 0;
    for (int i = 0; i < PAGES; i++)
        heard.sum += counters[i];
    heard.address = address;
    heard.filter = filter;
    heard.node = gw_here(NULL);
    heard.argument = *(int *)argument;
    CHECK(write(told, &one, sizeof one) == sizeof one);
}

static int read_all(const char *pages)
{
    int sum = 0;
    for (size_t i = 0; i < PAGES; i++)
        sum += ((volatile const char *)pages)[i * gw_page_size()];
    return sum;
}

static void *work(void *argument)
{
    uint64_t events, sum;
    int here = gw_here(NULL);

    /* A function is called. Set first, because pages of one array may bring some of the next along. */
    told = eventfd(0, 0);
    CHECK(told >= 0);
    gw_filter filter = about(second);
    filter.threshold = 1;
    filter.callback = listen_to;
    filter.argument = argument;
    int other = gw_monitor_filter(&filter);
    CHECK(other >= 0);

    /* A descriptor is told. */
    filter = about(first);
    filter.threshold = 1;
    filter.descriptor = eventfd(0, 0);
    CHECK(filter.descriptor >= 0);
    int one = gw_monitor_filter(&filter);
    CHECK(one >= 0 && one != other);
    REFUSES(gw_monitor_filter(&filter), EEXIST, "overlap");
    int shadow = gw_monitor_shadow(&one, 1, 0);
    CHECK(shadow >= 0);
    CHECK(counted(one) == 0);
    CHECK(read_all(first) == PAGES);
    CHECK(counted(one) >= PAGES);
    CHECK(gw_monitor_secondary(shadow, &sum) == 0);
    CHECK(sum == counted(one));
    CHECK(read(filter.descriptor, &events, sizeof events) == sizeof events);
    CHECK(events >= 1);
    CHECK(gw_monitor_unshadow(shadow) == 0);
    REFUSES(gw_monitor_secondary(shadow, &sum), ENOENT, "");
    CHECK(gw_monitor_read(one, NULL, 0) == PAGES);
    CHECK(gw_monitor_remove(one) == 0);
    REFUSES(gw_monitor_read(one, NULL, 0), ENOENT, "");

    CHECK(read_all(second) == PAGES);
    CHECK(read(told, &events, sizeof events) == sizeof events);
    CHECK(heard.count == 1 && heard.sum >= 1 && heard.filter == other);
    CHECK(heard.node == here && heard.argument == 7);
    CHECK((const char *)heard.address >= second);
    CHECK((const char *)heard.address < second + PAGES * gw_page_size());
    CHECK(gw_monitor_remove(other) == 0);
    return argument;
}

static void *look_at_third(void *unused)
{
    CHECK(read_all(third) == PAGES);
    return unused;
}

static void bad_input(void)
{
    gw_filter filter = about(first);
    REFUSES(gw_monitor_filter(NULL), EINVAL, "is NULL");
    filter.unit = 48;
    REFUSES(gw_monitor_filter(&filter), EINVAL, "power of two");
    filter = about(first + 8);
    REFUSES(gw_monitor_filter(&filter), EINVAL, "multiple");
    filter = about(first);
    filter.threshold = 3;
    REFUSES(gw_monitor_filter(&filter), EINVAL, "nobody to be told");
    filter = about(first);
    filter.bytes = (size_t)1 << 40;
    REFUSES(gw_monitor_filter(&filter), ENOSPC, "counters");
    REFUSES(gw_monitor_remove(-1), ENOENT, "");
    REFUSES(gw_monitor_remove(63), ENOENT, "");
    REFUSES(gw_monitor_shadow(NULL, 0, 0), EINVAL, "no filter is named");
    REFUSES(gw_monitor_name(first, 8, NULL), EINVAL, "the name is NULL");
    REFUSES(gw_monitor_name(first, 8, ""), EINVAL, "1 to 200 bytes");
    REFUSES(gw_monitor_name((void *)1, 8, "x"), EINVAL, "not shared");
    REFUSES(gw_monitor_start(""), EINVAL, "empty");
    REFUSES(gw_monitor_start("/nowhere/x.gwr"), EACCES, "cannot be written");
    REFUSES(gw_monitor_stop(), ENOENT, "is not being recorded");
}

static void *fetch(void *unused)
{
    CHECK(read_all(first) == PAGES);
    return unused;
}

static void *remove_it(void *filter)
{
    CHECK(gw_monitor_remove(*(int *)filter) == 0);
    return NULL;
}

static uint64_t counted_by(int node, int filter)
{
    uint64_t counters[PAGES], sum = 0;
    CHECK(gw_monitor_read_node(filter, node, counters, PAGES) == PAGES);
    for (int i = 0; i < PAGES; i++)
        sum += counters[i];
    return sum;
}

/* What one thread sets counts on all nodes, and any thread reads it. */
static void whole_run(gw_rset *far)
{
    int nodes[8], count = gw_nodes(nodes, 8), argument = 7;
    uint64_t events, all = 0, secondary = 0, one;
    pthread_t thread;
    told = eventfd(0, 0);
    gw_filter filter = about(third);
    filter.kinds = GW_FETCHES;
    filter.threshold = 1;
    filter.descriptor = told;
    filter.callback = listen_to;
    filter.argument = &argument;
    int number = gw_monitor_filter(&filter);
    CHECK(number >= 0);
    int shadow = gw_monitor_shadow(&number, 1, GW_COLD_READ);
    CHECK(shadow >= 0);
    CHECK(gw_thread_create(&thread, NULL, far, look_at_third, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(counted_by(nodes[1], number) >= 1);
    CHECK(counted_by(nodes[0], number) == 0);
    for (int i = 0; i < count; i++) {
        CHECK(gw_monitor_secondary_node(shadow, nodes[i], &one) == 0);
        CHECK(one <= counted_by(nodes[i], number));
        secondary += one;
        all += counted_by(nodes[i], number);
    }
    CHECK(counted(number) == all);
    CHECK(gw_monitor_secondary(shadow, &one) == 0);
    CHECK(one == secondary && one >= 1);
    /* The other node's counter has reached the threshold, and this one is told. */
    for (all = 0; all < 2; all += events)
        CHECK(read(told, &events, sizeof events) == sizeof events);
    CHECK(heard.node == nodes[0] && heard.filter == number && heard.argument == 7 && heard.sum >= 1);
    REFUSES(gw_monitor_read_node(number, 999, NULL, 0), EINVAL, "no node 999");
    REFUSES(gw_monitor_read_node(number, -1, NULL, 0), EINVAL, "no node -1");
    REFUSES(gw_monitor_secondary_node(shadow, 999, &one), EINVAL, "no node 999");
    CHECK(gw_monitor_unshadow(shadow) == 0);
    CHECK(gw_thread_create(&thread, NULL, far, remove_it, &number) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    REFUSES(gw_monitor_read(number, NULL, 0), ENOENT, "");
}

int main(void)
{
    int seven = 7;
    pthread_t thread;
    gw_rset *near, *far;
    if (!on_cluster()) {
        gw_filter filter = about(NULL);
        REFUSES(gw_monitor_filter(&filter), ENOTSUP, "one computer");
        REFUSES(gw_monitor_start("x.gwr"), ENOTSUP, "one computer");
        REFUSES(gw_monitor_name(&seven, sizeof seven, "x"), ENOTSUP, "one computer");
        puts("one computer");
        return 0;
    }
    near = gw_rset_of_node(0);
    far = gw_rset_of_node(1);
    first = gw_alloc(PAGES * gw_page_size(), near, GW_LOCAL, 0, 0);
    second = gw_alloc(PAGES * gw_page_size(), near, GW_LOCAL, 0, 0);
    third = gw_alloc(PAGES * gw_page_size(), near, GW_LOCAL, 0, 0);
    CHECK(first && second && third);
    for (size_t i = 0; i < PAGES; i++)
        first[i * gw_page_size()] = second[i * gw_page_size()] = third[i * gw_page_size()] = 1;
    bad_input();
    CHECK(gw_thread_create(&thread, NULL, far, work, &seven) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    whole_run(far);

    CHECK(gw_monitor_name(first, PAGES * gw_page_size(), "the first pages") == 0);
    CHECK(gw_monitor_start("monitored.gwr") == 0);
    REFUSES(gw_monitor_start("monitored.gwr"), EBUSY, "is recorded already");
    for (size_t i = 0; i < PAGES; i++)
        first[i * gw_page_size()] = 1;
    CHECK(gw_thread_create(&thread, NULL, far, fetch, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(gw_monitor_stop() == 0);
    gw_free(first);
    gw_free(second);
    gw_free(third);
    gw_rset_free(near);
    gw_rset_free(far);
    puts("counted");
    return 0;
}
