/* OpenMP: loops of all schedules, signed and unsigned, up and down, ordered, collapsed, with the last value kept. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

enum { MOST = 2000 };
static int done[MOST];
/* The runtime of LLVM 14 now and then loses the last value of a loop whose iterations threads get in any order. */
#ifdef __clang__
enum { KEEPS_LAST = 0 };
#else
enum { KEEPS_LAST = 1 };
#endif

static void each_once(const char *what, int count)
{
    for (int i = 0; i < MOST; i++) {
        CHECK(done[i] == (i < count), "%s: iteration %d was run %d times", what, i, done[i]);
        done[i] = 0;
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    int last = -1;
#pragma omp parallel for schedule(static, 7)
    for (int i = 0; i < 1000; i++)
        done[i]++;
    each_once("static", 1000);
#pragma omp parallel for schedule(dynamic) lastprivate(last)
    for (int i = 0; i < 100; i++) {
        done[i]++;
        last = i;
    }
    each_once("dynamic", 100);
    CHECK(last == 99 || !KEEPS_LAST, "the last value is %d", last);
    for (int round = 0; round < 50; round++) {
        long kept = -1, sum = 0;
        /* Threads that have done their part help others, whose iterations come before theirs. */
#pragma omp parallel for schedule(dynamic, 3) lastprivate(kept) reduction(+ : sum)
        for (long i = 0; i < 301; i++) {
            for (volatile long work = 0; work < (i < 150) * 300; work++)
                ;
            done[i]++;
            sum += kept = i;
        }
        each_once("uneven", 301);
        CHECK((kept == 300 || !KEEPS_LAST) && sum == 45150, "the last value is %ld, the sum %ld", kept, sum);
#pragma omp parallel for schedule(guided, 2) lastprivate(kept)
        for (long i = 400; i > 0; i--) {
            done[i - 1]++;
            kept = i;
        }
        each_once("guided", 400);
        CHECK(kept == 1 || !KEEPS_LAST, "the last value is %ld", kept);
    }
    static int runner[MOST];
#pragma omp parallel
    {
        int before = -1;
#pragma omp for schedule(monotonic : dynamic, 2)
        for (int i = 0; i < 500; i++) {
            CHECK(i > before, "iteration %d comes after %d", i, before);
            before = i;
        }
        before = -1;
#pragma omp for schedule(monotonic : guided)
        for (int i = 0; i < 500; i++) {
            CHECK(i > before, "iteration %d comes after %d", i, before);
            before = i;
        }
#ifndef __clang__
        /* Where nothing is said about the order, the iterations rise as well for programs of gcc. A thread with little to do does not help
         * with what comes before. */
        for (int round = 0; round < 50; round++) {
            before = -1;
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 100; i++) {
                CHECK(i > before, "iteration %d comes after %d", i, before);
                before = i;
                for (volatile long work = 0; work < (i < 50) * 300; work++)
                    ;
            }
            before = -1;
#pragma omp for schedule(guided)
            for (unsigned long i = 0; i < 100; i++) {
                CHECK((int)i > before, "iteration %lu comes after %d", i, before);
                before = (int)i;
            }
        }
#endif
#pragma omp for schedule(dynamic, 7)
        for (int i = 0; i < 500; i++)
            runner[i] = omp_get_thread_num();
    }
    for (int i = 0; i < 500; i++)
        CHECK(runner[i] == runner[i - i % 7], "iteration %d is not in a chunk of 7", i);
#pragma omp parallel for schedule(dynamic, 13)
    for (int i = 998; i >= 0; i -= 2)
        done[i / 2]++;
    each_once("downwards", 500);
#pragma omp parallel for schedule(guided, 5)
    for (unsigned long long i = ~0ull - 1500; i < ~0ull; i++)
        done[i - (~0ull - 1500)]++;
    each_once("unsigned", 1500);
#pragma omp parallel for schedule(guided)
    for (unsigned long i = 600; i > 0; i -= 3)
        done[i / 3 - 1]++;
    each_once("unsigned, downwards", 200);
#pragma omp parallel for collapse(2) schedule(monotonic : dynamic, 11)
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 40; j++)
            done[i * 40 + j]++;
    each_once("collapsed", 1200);
    int kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto};
    for (int kind = 0; kind < 4; kind++) {
        omp_sched_t set;
        int chunk;
        omp_set_schedule(kinds[kind], 3);
        omp_get_schedule(&set, &chunk);
        CHECK(set == (omp_sched_t)kinds[kind], "schedule %d was not set", kinds[kind]);
#pragma omp parallel for schedule(runtime)
        for (int i = 0; i < 777; i++)
            done[i]++;
        each_once("as set", 777);
    }
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 2) nowait
        for (int i = 0; i < 300; i++)
            done[i]++;
#pragma omp for schedule(dynamic, 3) nowait
        for (int i = 300; i < 600; i++)
            done[i]++;
#pragma omp for schedule(guided) nowait
        for (int i = 600; i < 900; i++)
            done[i]++;
    }
    each_once("one after the other", 900);
    int order[200], next = 0;
#pragma omp parallel for ordered schedule(dynamic, 3)
    for (int i = 0; i < 100; i++) {
        done[i]++;
#pragma omp ordered
        order[next++] = i;
    }
#pragma omp parallel for ordered schedule(static)
    for (int i = 100; i < 200; i++) {
#pragma omp ordered
        if (i % 3)
            order[next++] = i;
        else
            order[next++] = i;
    }
    each_once("ordered", 100);
    for (int i = 0; i < 200; i++)
        CHECK(order[i] == i, "in place %d came iteration %d", i, order[i]);
#pragma omp parallel for schedule(dynamic)
    for (int i = 5; i < 5; i++)
        done[i]++;
    each_once("empty", 0);
    return pass();
}
