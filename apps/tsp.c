/* The travelling salesman's shortest tour by branch and bound.
 *
 * Beginnings of tours wait in a common pool, shortest first, under a mutex. A thread takes one; if it is short, it
 * puts all its continuations into the pool; otherwise it searches to the end by itself. The best length found is
 * common, too, under a mutex of its own; a thread works with a copy of it that it renews now and then (an old copy
 * costs time, never the result). A thread that finds the pool empty waits until there is work or nobody is left who
 * could make any. Main reads the instance and computes as thread 0.
 */
#include "common.h"
#include "tsplib.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "number of cities, the first of the file (0: all)", 14, 17, 0, MAX_CITIES, 0},
    {'d', "cities in the beginnings of tours that are shared", 4, 3, 2, MAX_CITIES, 0},
};
static struct app app = {"tsp", "shortest tour by branch and bound", specs, 2, "data/gr17.tsp",
                         "the instance, in TSPLIB format"};

enum { RENEW_EVERY = 200000 }; /* nodes searched between two looks at the common best length */

struct tour {
    int length;
    int cities;
    unsigned visited; /* bit set */
    unsigned char city[MAX_CITIES];
};

static struct instance map;
static int cheapest[MAX_CITIES]; /* length of the shortest edge at each city */
static int shared_depth;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tour *heap; /* heap[0] is the shortest */
    int used, room;
    int busy; /* threads that may still put something in */
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct {
    pthread_mutex_t mutex;
    int length;
    unsigned char city[MAX_CITIES];
} best = {.mutex = PTHREAD_MUTEX_INITIALIZER, .length = INT_MAX};

static int best_length(void)
{
    pthread_mutex_lock(&best.mutex);
    int length = best.length;
    pthread_mutex_unlock(&best.mutex);
    return length;
}

static void offer(const struct tour *t, int length)
{
    pthread_mutex_lock(&best.mutex);
    if (length < best.length) {
        best.length = length;
        memcpy(best.city, t->city, sizeof best.city);
    }
    pthread_mutex_unlock(&best.mutex);
}

static void swap(int a, int b)
{
    struct tour kept = pool.heap[a];
    pool.heap[a] = pool.heap[b];
    pool.heap[b] = kept;
}

/* With the pool's mutex held. */
static void pool_put(const struct tour *t)
{
    if (pool.used == pool.room) {
        pool.room = pool.room ? 2 * pool.room : 256;
        pool.heap = realloc(pool.heap, sizeof *pool.heap * (size_t)pool.room);
        if (!pool.heap)
            die("out of memory for %d beginnings of tours", pool.room);
    }
    int at = pool.used++;
    pool.heap[at] = *t;
    for (; at > 0 && pool.heap[at].length < pool.heap[(at - 1) / 2].length; at = (at - 1) / 2)
        swap(at, (at - 1) / 2);
}

/* With the pool's mutex held and the pool not empty. */
static struct tour pool_take(void)
{
    struct tour first = pool.heap[0];
    pool.heap[0] = pool.heap[--pool.used];
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < pool.used; child++)
            if (pool.heap[child].length < pool.heap[least].length)
                least = child;
        if (least == at)
            return first;
        swap(at, least);
        at = least;
    }
}

/* The next beginning to work on; false when all is done. */
static bool take(struct tour *t, bool was_busy)
{
    pthread_mutex_lock(&pool.mutex);
    if (was_busy)
        pool.busy--;
    while (pool.used == 0 && pool.busy > 0)
        pthread_cond_wait(&pool.changed, &pool.mutex);
    bool some = pool.used > 0;
    if (some) {
        *t = pool_take();
        pool.busy++;
    } else
        pthread_cond_broadcast(&pool.changed);
    pthread_mutex_unlock(&pool.mutex);
    return some;
}

/* No tour that begins with `t` is shorter: each city still to be left costs at least its shortest edge. */
static int bound(const struct tour *t)
{
    int sum = t->length + cheapest[t->city[t->cities - 1]];
    for (int c = 0; c < map.n; c++)
        if (!(t->visited >> c & 1))
            sum += cheapest[c];
    return sum;
}

static void extend(struct tour *t, int city)
{
    t->length += map.distance[t->city[t->cities - 1]][city];
    t->visited |= 1u << city;
    t->city[t->cities++] = (unsigned char)city;
}

static void retract(struct tour *t)
{
    int city = t->city[--t->cities];
    t->visited &= ~(1u << city);
    t->length -= map.distance[t->city[t->cities - 1]][city];
}

static void share_continuations(struct tour *t)
{
    int limit = best_length();
    pthread_mutex_lock(&pool.mutex);
    for (int c = 0; c < map.n; c++)
        if (!(t->visited >> c & 1)) {
            extend(t, c);
            if (bound(t) < limit)
                pool_put(t);
            retract(t);
        }
    pthread_cond_broadcast(&pool.changed);
    pthread_mutex_unlock(&pool.mutex);
}

struct search {
    int limit; /* copy of the best length */
    long nodes;
};

static void search(struct search *s, struct tour *t, int lower)
{
    if (++s->nodes % RENEW_EVERY == 0)
        s->limit = best_length();
    if (t->cities == map.n) {
        int length = t->length + map.distance[t->city[map.n - 1]][t->city[0]];
        if (length < s->limit) {
            offer(t, length);
            s->limit = best_length();
        }
        return;
    }
    int last = t->city[t->cities - 1];
    for (int c = 0; c < map.n; c++) {
        /* Going on to c costs the edge instead of the cheapest edge of the last city. */
        int next = lower + map.distance[last][c] - cheapest[last];
        if (t->visited >> c & 1 || next >= s->limit)
            continue;
        extend(t, c);
        search(s, t, next);
        retract(t);
    }
}

static void work(int self)
{
    (void)self;
    struct tour t;
    struct search s = {0, 0};
    for (bool busy = false; take(&t, busy); busy = true) {
        s.limit = best_length();
        int lower = bound(&t);
        if (lower >= s.limit)
            continue;
        if (t.cities < shared_depth && t.cities < map.n)
            share_continuations(&t);
        else
            search(&s, &t, lower);
    }
}

/* The shortest tour by dynamic programming over sets of cities (Held and Karp). */
static int by_dynamic_programming(void)
{
    int m = map.n - 1; /* city m is the start and not in the sets */
    size_t sets = (size_t)1 << m;
    int *shortest = must_alloc(sizeof(int) * sets * (size_t)m);
    for (size_t set = 1; set < sets; set++)
        for (int last = 0; last < m; last++) {
            int *to = &shortest[set * (size_t)m + (size_t)last];
            *to = INT_MAX / 2;
            if (!(set >> last & 1))
                continue;
            size_t before = set & ~((size_t)1 << last);
            if (before == 0)
                *to = map.distance[m][last];
            for (int c = 0; c < m; c++)
                if (before >> c & 1) {
                    int length = shortest[before * (size_t)m + (size_t)c] + map.distance[c][last];
                    if (length < *to)
                        *to = length;
                }
        }
    int result = INT_MAX;
    for (int last = 0; last < m; last++) {
        int length = shortest[(sets - 1) * (size_t)m + (size_t)last] + map.distance[last][m];
        if (length < result)
            result = length;
    }
    free(shortest);
    return result;
}

static void verify(void)
{
    int length = 0;
    unsigned seen = 0;
    for (int i = 0; i < map.n; i++) {
        seen |= 1u << best.city[i];
        length += map.distance[best.city[i]][best.city[(i + 1) % map.n]];
    }
    check(seen == (map.n == 32 ? ~0u : (1u << map.n) - 1) && length == best.length, "the tour is one of that length");
    if (map.n <= 20)
        check(by_dynamic_programming() == best.length, "dynamic programming finds no shorter one");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    read_instance(&map, app.file, (int)specs[0].value);
    shared_depth = (int)specs[1].value;
    for (int i = 0; i < map.n; i++) {
        cheapest[i] = INT_MAX;
        for (int j = 0; j < map.n; j++)
            if (j != i && map.distance[i][j] < cheapest[i])
                cheapest[i] = map.distance[i][j];
    }
    struct tour start = {.cities = 1, .visited = 1};
    pool_put(&start);
    run_team(MAIN_WORKS, work);
    printf("result: tsp %s, %d cities: shortest tour %d\n", map.name, map.n, best.length);
    if (self_check)
        verify();
    return 0;
}
