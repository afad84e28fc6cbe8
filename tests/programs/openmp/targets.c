/* OpenMP: constructs for devices, asynchronous and in order, on the host; leagues of teams. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))
#define MANY 200

struct wide {
    _Alignas(64) long words[20];
};

static int alone(void)
{
    return omp_get_num_threads() == 1 && omp_get_thread_num() == 0 && omp_get_level() == 0 && omp_get_num_teams() == 1;
}

/* Outside all regions. */
static void outside(void)
{
    int result = 0;
#pragma omp target map(tofrom : result)
    result = alone() ? omp_is_initial_device() + 1 : -1;
    CHECK(result == 2, "a target region is not outside all regions: %d", result);
}

/* Asynchronous regions are tasks: each runs once, with the values of its own variables. */
static void many(void)
{
    static int seen[MANY], sums[MANY];
    struct wide wide = {{0}};
    char letter = 'a';
    int length = 20;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < MANY; i++) {
            wide.words[7] = i;
            letter = 'a' + i % 26;
#pragma omp target nowait map(tofrom : seen) firstprivate(i, wide, letter) thread_limit(length)
            {
                seen[i] += alone() && (uintptr_t)&wide % 64 == 0 && letter == 'a' + i % 26 ? wide.words[7] + 1 : -1000;
                wide.words[7] = letter = 0;
            }
        }
        wide.words[7] = letter = 0;
#pragma omp taskgroup
        for (int i = 0; i < MANY; i++)
#pragma omp target teams distribute parallel for nowait map(tofrom : sums) firstprivate(i) num_threads(2)
            for (int k = 0; k < 1; k++)
                sums[i] += i;
        for (int i = 0; i < MANY; i++)
            CHECK(sums[i] == i, "region %d of a group gave %d", i, sums[i]);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(seen[i] == i + 1, "region %d gave %d", i, seen[i]);
}

/* Regions and tasks in the order of what they depend on. */
static void ordered(void)
{
    int chain = 0, mine = 5, seen = 0, from = 0, entered = 0, updated = 0, after = -1, at_once = -1;
#pragma omp parallel
#pragma omp single
    {
#pragma omp target nowait map(tofrom : chain) depend(out : chain)
        chain = 1;
#pragma omp task depend(inout : chain)
        chain = chain * 10 + 2;
#pragma omp target nowait map(tofrom : chain) firstprivate(mine) depend(inout : chain)
        chain = chain * 10 + mine;
        mine = 9;
#pragma omp task depend(inout : chain)
        chain = chain * 10 + 3;
#pragma omp target map(tofrom : chain) firstprivate(mine) depend(inout : chain)
        chain = chain * 10 + mine;
        seen = chain;
        /* Constructs that only map or copy are links of the chain, too. */
#pragma omp task depend(out : from)
        {
            for (volatile int i = 0; i < 1000000; i++)
                ;
            from = 1;
        }
#pragma omp target enter data map(to : from) depend(in : from) depend(out : entered) nowait
#pragma omp task depend(inout : entered)
        entered = from + 1;
#pragma omp target update from(entered) depend(in : entered) depend(out : updated) nowait
#pragma omp task depend(inout : updated)
        updated = entered + 1;
#pragma omp target exit data map(from : from) depend(inout : updated)
        after = updated;
#pragma omp task depend(out : from)
        from = 40;
#pragma omp target update from(from) depend(in : from)
        at_once = from;
    }
    CHECK(chain == 12539 && seen == chain, "the chain is %d and was %d", chain, seen);
    CHECK(from == 40 && entered == 2 && updated == 3, "the links are %d, %d and %d", from, entered, updated);
    CHECK(after == 3 && at_once == 40, "constructs did not wait: %d and %d", after, at_once);
}

/* Each thread of a region meets its own target region, with a region inside. */
static void inside(void)
{
    int loops[MAX_THREADS] = {0}, sums[MAX_THREADS] = {0}, data[MAX_THREADS] = {0};
#pragma omp parallel
    {
        int me = omp_get_thread_num();
#pragma omp target map(tofrom : loops) firstprivate(me)
        {
            int count = 0;
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 100; i++)
                count++;
            loops[me] = count;
        }
#pragma omp target map(tofrom : sums) firstprivate(me)
#pragma omp parallel for num_threads(3) schedule(dynamic)
        for (int i = 0; i < 100; i++)
#pragma omp critical
            sums[me] += i * (omp_get_level() == 1 && omp_get_num_threads() == 3);
#pragma omp target data map(tofrom : data)
        {
#pragma omp target map(tofrom : data)
            data[me]++;
#pragma omp target update from(data)
        }
#pragma omp barrier
        CHECK(omp_get_thread_num() == me && omp_get_level() == 1, "the thread has lost its region");
    }
    for (int i = 0; i < threads; i++) {
        CHECK(loops[i] == 100, "thread %d had %d iterations of a loop of its own", i, loops[i]);
        CHECK(sums[i] == 4950, "the region inside that of thread %d gave %d", i, sums[i]);
        CHECK(data[i] == 1, "thread %d has counted to %d", i, data[i]);
    }
}

/* All threads of regions inside teams know their team. */
static void leagues(void)
{
    int host[2][8] = {{0}}, device[2][8] = {{0}}, outside_again = -1;
#pragma omp teams num_teams(3)
    {
        host[0][omp_get_team_num()] += omp_get_num_teams();
#pragma omp parallel num_threads(3)
        if (omp_get_thread_num() == 2)
            host[1][omp_get_team_num()] += omp_get_num_teams();
    }
    outside_again = omp_get_num_teams() * 10 + omp_get_team_num();
#pragma omp target teams num_teams(3) map(tofrom : device)
    {
        device[0][omp_get_team_num()] += omp_get_num_teams();
#pragma omp parallel num_threads(3)
        if (omp_get_thread_num() == 2)
            device[1][omp_get_team_num()] += omp_get_num_teams();
    }
    for (int i = 0; i < 8; i++) {
        int expected = i < 3 ? 3 : 0;
        CHECK(host[0][i] == expected && host[1][i] == expected, "team %d: %d and %d", i, host[0][i], host[1][i]);
        CHECK(device[0][i] == expected && device[1][i] == expected, "team %d of a device: %d and %d", i, device[0][i],
              device[1][i]);
    }
    CHECK(outside_again == 10, "the league is not over: %d", outside_again);
    CHECK(omp_get_num_teams() == 1 && omp_get_team_num() == 0, "the device's league is not over");
}

/* Asynchronous regions outside all regions. After them, gcc 12's own runtime may hang at the end of other regions. */
static void last(void)
{
    int later = 0, next = 0;
#pragma omp target nowait map(tofrom : later) depend(out : later)
    later = 7;
#pragma omp target nowait map(tofrom : later, next) depend(inout : later)
    next = later + 1;
#pragma omp taskwait
    CHECK(later == 7 && next == 8, "asynchronous regions gave %d and %d", later, next);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    outside();
    many();
    ordered();
    inside();
    leagues();
    last();
    return pass();
}
