/* OpenMP: regions of changing sizes and depths, what threads keep between them, sections, single, critical, locks. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

static int own;
#pragma omp threadprivate(own)

static int shared_array[4096];

static void nested(void)
{
    int seen[2][3] = {{0}};
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(3)
        {
            int inner = omp_get_thread_num();
#pragma omp critical
            seen[outer][inner] += omp_get_ancestor_thread_num(1) == outer && omp_get_team_size(1) == 2
                                  && omp_get_level() == 2 && omp_get_num_threads() == 3;
        }
    }
    for (int i = 0; i < 6; i++)
        CHECK(seen[i / 3][i % 3] == 1, "thread %d of the inner team %d was seen %d times", i % 3, i / 3,
              seen[i / 3][i % 3]);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(3)
        {
#pragma omp critical
            seen[0][0] += omp_get_num_threads();
        }
    }
    CHECK(seen[0][0] == 3, "inner regions had %d threads instead of one", seen[0][0] - 1);
}

static void locks(void)
{
    omp_lock_t lock;
    omp_nest_lock_t nest;
    long counted = 0, nestedly = 0, tested = 0;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < 20; i++) {
        omp_set_lock(&lock);
        counted++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        int depth = omp_test_nest_lock(&nest);
        nestedly += depth == 2;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        while (!omp_test_lock(&lock))
            ;
        tested++;
        omp_unset_lock(&lock);
    }
    CHECK(counted == 20 * threads && nestedly == counted && tested == counted, "locks let through %ld, %ld, %ld",
          counted, nestedly, tested);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

static void once_each(void)
{
    int sections = 0, singles = 0, copies = 0, masters = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp sections
        {
#pragma omp section
            {
#pragma omp critical(first)
                sections += 1;
            }
#pragma omp section
            {
#pragma omp critical(first)
                sections += 10;
            }
#pragma omp section
            {
#pragma omp critical(first)
                sections += 100;
            }
        }
        int handed;
        for (int i = 0; i < 5; i++) {
#pragma omp single copyprivate(handed)
            handed = ++singles * 7;
#pragma omp critical(second)
            copies += handed;
#pragma omp barrier
        }
#pragma omp master
        masters++;
    }
    CHECK(sections == 111 && singles == 5 && masters == 1, "sections %d, singles %d, masters %d", sections, singles,
          masters);
    CHECK(copies == threads * 7 * 15, "copies add up to %d", copies);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 10);
    for (int round = 0; round < iterations; round++) {
        int size = 1 + (round * 3) % threads, came = 0, kept = 0;
#pragma omp parallel num_threads(size)
        own = 100 + omp_get_thread_num();
#pragma omp parallel num_threads(size)
        {
            int me = omp_get_thread_num();
#pragma omp critical
            {
                came += 1 + (omp_get_num_threads() != size) * 1000;
                kept += own == 100 + me;
            }
#pragma omp barrier
#pragma omp for
            for (int i = 0; i < 4096; i++)
                shared_array[i] += i;
#pragma omp for nowait
            for (int i = 0; i < 4096; i++)
                shared_array[i] -= shared_array[i] - i * (round + 1);
        }
        CHECK(came == size && kept == size, "of %d threads %d came, and %d had their own", size, came, kept);
        for (int i = 0; i < 4096; i++)
            CHECK(shared_array[i] == i * (round + 1), "element %d is %d in round %d", i, shared_array[i], round);
    }
    once_each();
    locks();
    nested();
    CHECK(!omp_in_parallel() && omp_get_num_threads() == 1 && omp_get_thread_num() == 0, "a region did not end");
    return pass();
}
