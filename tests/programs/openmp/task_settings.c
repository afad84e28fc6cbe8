/* OpenMP: settings belong to tasks, which begin with those of their region; nestable locks belong to tasks, too. Threads of a team have its
 * limits, and the default allocator of the thread that has begun it. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

static omp_nest_lock_t lock;

static void settings_of_tasks(void)
{
    int seen = 0;
    omp_set_num_threads(threads);
#pragma omp parallel
#pragma omp single
    {
#pragma omp task if (0)
        omp_set_num_threads(threads + 3);
        CHECK(omp_get_max_threads() == threads, "a task has set the threads of another: %d", omp_get_max_threads());
        omp_set_num_threads(threads + 5);
        for (int i = 0; i < 40; i++) {
#pragma omp task
            {
                CHECK(omp_get_max_threads() == threads + 5, "a task begins with %d threads", omp_get_max_threads());
                omp_set_num_threads(1);
#pragma omp critical
                seen++;
            }
        }
    }
    CHECK(seen == 40 && omp_get_max_threads() == threads, "%d tasks, %d threads", seen, omp_get_max_threads());
}

static void locks_of_tasks(void)
{
    omp_init_nest_lock(&lock);
    omp_set_nest_lock(&lock);
    CHECK(omp_test_nest_lock(&lock) == 2, "twice");
#pragma omp parallel if (0)
    CHECK(omp_test_nest_lock(&lock) == 0, "the region's task is another one");
#pragma omp task if (0)
    CHECK(omp_test_nest_lock(&lock) == 0, "so is this one");
    CHECK(omp_test_nest_lock(&lock) == 3, "three times");
    for (int i = 0; i < 3; i++)
        omp_unset_nest_lock(&lock);
    int right = 0;
#pragma omp parallel reduction(+ : right)
    {
        omp_set_nest_lock(&lock);
        right += omp_test_nest_lock(&lock) == 2;
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
    }
    CHECK(right == threads, "%d threads had the lock", right);
    omp_destroy_nest_lock(&lock);
}

static void limits(void)
{
#pragma omp teams num_teams(3) thread_limit(2)
    {
#pragma omp parallel
        CHECK(omp_get_num_threads() <= 2 && omp_get_thread_limit() <= 2, "%d threads", omp_get_num_threads());
    }
#pragma omp target thread_limit(3)
    CHECK(omp_get_thread_limit() <= 3, "%d in a target", omp_get_thread_limit());
    CHECK(omp_get_thread_limit() > 3, "%d outside", omp_get_thread_limit());
}

static void allocators(void)
{
    const omp_alloctrait_t traits[] = {{omp_atk_alignment, 256}};
    omp_allocator_handle_t aligned = omp_init_allocator(omp_default_mem_space, 1, traits);
    int *numbers = omp_alloc(1000 * sizeof *numbers, aligned), right = 0;
    omp_set_default_allocator(aligned);
#pragma omp parallel reduction(+ : right)
    {
        int *own = omp_alloc(sizeof *own, omp_null_allocator);
        *own = omp_get_thread_num();
        right += (uintptr_t)own % 256 == 0 && omp_get_default_allocator() == aligned;
#pragma omp for
        for (int i = 0; i < 1000; i++)
            numbers[i] = i + *own - *own;
        omp_free(own, omp_null_allocator);
    }
    CHECK(right == threads, "%d threads have the allocator", right);
    for (int i = 0; i < 1000; i++)
        CHECK(numbers[i] == i, "%d is %d", i, numbers[i]);
    omp_set_default_allocator(omp_default_mem_alloc);
    omp_free(numbers, aligned);
    omp_destroy_allocator(aligned);
}

static void loops_of_tasks(void)
{
    int most = 0, least = 1000, tasks = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(strict : 30) reduction(max : most) reduction(min : least) reduction(+ : tasks)
    for (int i = 0; i < 100; i++) {
        most = i > most ? i : most;
        least = i < least ? i : least;
        tasks += i % 30 == 0;
    }
    CHECK(most == 99 && least == 0 && tasks == 4, "%d to %d, %d tasks", least, most, tasks);
    int counts[100] = {0};
#pragma omp parallel
#pragma omp single
    {
        int number = 0, begun = 0;
#pragma omp taskloop grainsize(strict : 30) firstprivate(number, begun) shared(counts)
        for (int i = 0; i < 100; i++) {
            if (!begun++)
                number = i;
            counts[number] = begun;
        }
    }
    CHECK(counts[0] == 30 && counts[30] == 30 && counts[60] == 30 && counts[90] == 10, "%d, %d, %d, %d", counts[0],
          counts[30], counts[60], counts[90]);
}

static void formats(void)
{
    char text[64];
    omp_capture_affinity(text, sizeof text, "%0.4a|%.3L|%0.3N|%%");
    CHECK(strcmp(text, "-001|  0|001|%") == 0, "%s", text);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    settings_of_tasks();
    locks_of_tasks();
    limits();
    allocators();
    loops_of_tasks();
    formats();
    return pass();
}
