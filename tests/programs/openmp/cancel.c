/* OpenMP: loops, sections, regions and groups of tasks are cancelled. Without OMP_CANCELLATION they run to their ends. */
#include "../harness.h"
#include <omp.h>
#include <unistd.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

enum { LENGTH = 20000, TASKS = 200 };

static int numbers[LENGTH];

/* The loop ends as soon as one thread has found the number; each cancellation point may be the last. */
static int search(int wanted)
{
    int found = -1;
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 16)
        for (int i = 0; i < LENGTH; i++) {
            if (numbers[i] == wanted) {
#pragma omp critical
                found = i;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
    }
    return found;
}

/* One thread cancels at once, and the others see it or their loops would not end. */
static int endless_loops(int rounds)
{
    int ended = 0;
#pragma omp parallel
    for (int round = 0; round < rounds; round++) {
#pragma omp for schedule(static)
        for (long i = 0; i < 1L << 40; i++) {
            if (i == 0) {
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
#pragma omp single
        ended++;
    }
    return ended;
}

/* Who cancels does not run the rest of its part; who does not look runs all of it. */
static long dropped(void)
{
    long all = 0;
#pragma omp parallel
    {
        long sum = 0;
#pragma omp for schedule(static, 100)
        for (int i = 0; i < 100 * threads; i++) {
            if (i == 50) {
#pragma omp cancel for
            }
            sum++;
        }
#pragma omp for schedule(static)
        for (int i = 0; i < 1000; i++)
            sum += 1000;
#pragma omp critical
        all += sum;
    }
    return all;
}

static int sections(void)
{
    int after = 0;
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            {
#pragma omp cancel sections
                after = 1000;
            }
#pragma omp section
            {
                while (threads > 1) {
#pragma omp cancellation point sections
                }
                after += threads == 1 ? 0 : 100;
            }
        }
#pragma omp single
        after++;
    }
    return after;
}

/* Threads wait in a barrier inside the region, compute, or are at its end when it is cancelled. */
static int regions(int round, int canceller)
{
    int passed = 0, ended = 0;
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
        for (int i = 0; i < round % 4; i++) {
#pragma omp barrier
#pragma omp critical
            passed++;
        }
#pragma omp barrier
        if (me == canceller) {
#pragma omp cancel parallel
        }
        if (round % 3 == 0) {
#pragma omp barrier
        } else if (round % 3 == 1) {
#pragma omp for
            for (int i = 0; i < threads; i++)
                numbers[i] += 0;
        } else {
            while (true) {
#pragma omp cancellation point parallel
            }
        }
#pragma omp critical
        ended++;
    }
    CHECK(ended == 0, "%d threads passed a barrier of a cancelled region", ended);
    return passed;
}

/* Each thread cancels its own inner region, or none. */
static int nested(void)
{
    int whole = 0, cut = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
    {
        const bool cancels = omp_get_thread_num() == 1;
#pragma omp parallel num_threads(2)
        {
            if (cancels && omp_get_thread_num() == 1) {
#pragma omp cancel parallel
            }
#pragma omp barrier
#pragma omp critical
            whole++;
        }
#pragma omp barrier
#pragma omp critical
        cut++;
    }
    omp_set_max_active_levels(1);
    return whole * 100 + cut;
}


/* A task cancels its group: those that depend on it never run, and those that wait for the cancellation end. */
static int groups(void)
{
    int before = 0, never = 0, after = 0;
    static int order;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task shared(after)
#pragma omp critical
        after++;
#pragma omp taskgroup
        {
            for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : order) shared(before)
                before++;
            }
#pragma omp task depend(inout : order)
            {
#pragma omp task /* a descendant of the group */
                {
#pragma omp cancel taskgroup
                }
#pragma omp taskwait
                for (int i = 0; i < 20; i++) {
#pragma omp task shared(never)
                    never = 1;
                }
            }
            for (int i = 0; i < TASKS; i++) {
#pragma omp task depend(inout : order) shared(never)
                never = 2;
            }
            if (threads > 1) {
#pragma omp task
                while (true) {
#pragma omp cancellation point taskgroup
                    usleep(100);
                }
            }
        }
        CHECK(before == 20 && never == 0, "%d tasks ran before, and the cancelled tasks %d", before, never);
        /* The next group is not cancelled. */
#pragma omp taskgroup
        for (int i = 0; i < 20; i++) {
#pragma omp task shared(after)
#pragma omp critical
            after++;
        }
#pragma omp task shared(after)
#pragma omp critical
        after++;
    }
    return after;
}

/* Only the inner group is cancelled. */
static int inner_groups(void)
{
    int outer = 0, inner = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
    for (int i = 0; i < 10; i++) {
#pragma omp task shared(outer, inner)
        {
#pragma omp taskgroup
            {
#pragma omp task shared(inner)
                {
#pragma omp cancel taskgroup
#pragma omp critical
                    inner++;
                }
            }
#pragma omp critical
            outer++;
        }
    }
    return outer * 100 + inner;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 10);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    if (!omp_get_cancellation()) {
        EXPECT(100 * threads + 1000000, dropped());
        return pass();
    }
    for (int i = 0; i < LENGTH; i++)
        numbers[i] = i * 7 % LENGTH;
    for (long i = 0; i < iterations; i++) {
        const int wanted = (int)(i * 1237 % LENGTH), found = search(wanted);
        CHECK(found >= 0 && numbers[found] == wanted, "the search for %d gave %d", wanted, found);
    }
    EXPECT(iterations, endless_loops((int)iterations));
    EXPECT(100 * threads - 50 + 1000000, dropped());
    if (threads > 1)
        EXPECT(1, sections());
    for (int i = 0; i < iterations * 3; i++)
        EXPECT(i % 4 * threads, regions(i, i % threads));
    EXPECT(403, nested());
    EXPECT(22, groups());
    EXPECT(1000, inner_groups());
    return pass();
}
