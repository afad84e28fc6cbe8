/* What gcc makes calls of: regions, loops of all schedules, sections, single, ordered, critical, atomic, locks, reductions, tasks. Prints
 * sums that do not depend on the number of threads or their order. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1003 };
static long array[COUNT];
static int private_value;
#pragma omp threadprivate(private_value)

static long total(void)
{
    long sum = 0;
    for (int at = 0; at < COUNT; at++) {
        sum += array[at] * (at % 17 + 1);
        array[at] = 0;
    }
    return sum;
}

static long fibonacci(int n)
{
    long one, two;
    if (n < 2)
        return n;
#pragma omp task shared(one)
    one = fibonacci(n - 1);
#pragma omp task shared(two) final(n < 6)
    two = fibonacci(n - 2);
#pragma omp taskwait
    return one + two;
}

static void loops(void)
{
#pragma omp parallel
    {
#pragma omp for schedule(static, 3)
        for (int at = 0; at < COUNT; at++)
            array[at] += at;
#pragma omp for schedule(dynamic)
        for (int at = COUNT - 1; at >= 0; at--)
            array[at] += 2;
#pragma omp for schedule(guided, 4) nowait
        for (unsigned long long at = 3; at < COUNT; at += 7)
            array[at] += 3;
#pragma omp barrier
#pragma omp for schedule(runtime)
        for (unsigned long long at = COUNT - 1; at > 5; at -= 5)
            array[at] += 4;
    }
    printf("loops %ld\n", total());
#pragma omp parallel for schedule(dynamic, 5)
    for (int at = 0; at < COUNT; at++)
        array[at] += at;
#pragma omp parallel for schedule(guided)
    for (int at = 0; at < COUNT; at++)
        array[at] *= 2;
#pragma omp parallel for schedule(runtime)
    for (int at = 1; at < COUNT; at += 2)
        array[at] -= 1;
#pragma omp parallel for schedule(dynamic)
    for (int at = 5; at < 5; at++)
        array[at] += 1000;
    int last = -1;
#pragma omp parallel for schedule(dynamic, 7) lastprivate(last)
    for (int at = 0; at < COUNT; at += 3)
        last = at;
    printf("regions %ld %d\n", total(), last);
}

static void order(void)
{
    int seen = 0, wrong = 0;
#pragma omp parallel
    {
#pragma omp for ordered schedule(dynamic, 2)
        for (int at = 0; at < 100; at++) {
            array[at] = at;
#pragma omp ordered
            wrong += seen++ != at;
        }
#pragma omp for ordered schedule(static)
        for (int at = 0; at < 100; at++)
#pragma omp ordered
            wrong += seen++ != 100 + at;
#pragma omp for ordered schedule(runtime)
        for (int at = 0; at < 10; at++)
            if (at % 2) {
#pragma omp ordered
                wrong += seen++ != 200 + at / 2;
            }
    }
    printf("order %d %d %ld\n", seen, wrong, total());
}

static void shares(void)
{
    int sections[5] = {0}, singles = 0, masters = 0, copied = 0;
    long critical = 0, named = 0, locked = 0, nested = 0, sum = 0, most = -1;
    double real = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(7)
    {
        int value = -1;
#pragma omp sections
        {
#pragma omp section
            sections[0]++;
#pragma omp section
            sections[1]++;
#pragma omp section
            sections[2]++;
        }
#pragma omp single
        singles++;
#pragma omp single copyprivate(value)
        value = 42;
#pragma omp atomic
        copied += value;
#pragma omp master
        masters++;
        for (int at = 0; at < 20; at++) {
#pragma omp critical
            critical += at;
#pragma omp critical(other)
            named += at;
            omp_set_lock(&lock);
            locked += at;
            omp_unset_lock(&lock);
            omp_set_nest_lock(&nest);
            while (!omp_test_nest_lock(&nest))
                ;
            nested += at;
            omp_unset_nest_lock(&nest);
            omp_unset_nest_lock(&nest);
        }
#pragma omp for reduction(+ : sum, real) reduction(max : most)
        for (int at = 0; at < COUNT; at++) {
            sum += at;
            real += 0.5;
            most = at % 211 > most ? at % 211 : most;
        }
    }
#pragma omp parallel sections num_threads(3)
    {
#pragma omp section
        sections[3]++;
#pragma omp section
        sections[4]++;
    }
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    printf("shares %d%d%d%d%d %d %d %d, %ld %ld %ld %ld, %ld %.1f %ld\n", sections[0], sections[1], sections[2],
           sections[3], sections[4], singles, copied, masters, critical, named, locked, nested, sum, real, most);
}

static void tasks(void)
{
    long result = 0, sum = 0, grouped = 0, chain = 1;
    char text[100];
    memset(text, 'x', sizeof text);
#pragma omp parallel
#pragma omp single
    {
        result = fibonacci(15);
        for (int at = 0; at < 200; at++)
#pragma omp task firstprivate(text) shared(sum)
        {
            long own = 0;
            for (int letter = 0; letter < 100; letter++)
                own += text[letter] + at;
#pragma omp atomic
            sum += own;
        }
#pragma omp taskgroup
        for (int at = 0; at < 10; at++)
#pragma omp task shared(grouped)
        {
#pragma omp task shared(grouped)
#pragma omp atomic
            grouped += 10;
#pragma omp atomic
            grouped += 1;
        }
        if (grouped != 110)
            grouped = -1;
        for (int at = 0; at < 8; at++)
#pragma omp task depend(inout : chain) shared(chain)
            chain = chain * 3 % 1009;
#pragma omp taskyield
#pragma omp taskloop grainsize(10)
        for (int at = 0; at < COUNT; at++)
            array[at] = at;
#pragma omp taskloop num_tasks(7)
        for (unsigned long long at = COUNT - 1; at > 2; at -= 3)
            array[at] += 5;
    }
    printf("tasks %ld %ld %ld %ld %ld\n", result, sum, grouped, chain, total());
}

static void asked(void)
{
    int counted = 0, inner = 0, levels = 0;
    omp_set_num_threads(5);
    omp_set_max_active_levels(2);
#pragma omp parallel reduction(+ : counted, inner, levels)
    {
        private_value = omp_get_thread_num();
        counted += omp_get_num_threads() == 5 && omp_in_parallel();
#pragma omp parallel num_threads(3) reduction(+ : inner, levels)
        {
            inner += omp_get_thread_num() + 10 * omp_get_ancestor_thread_num(1);
            levels += omp_get_level() * 100 + omp_get_active_level() * 10 + omp_get_team_size(1);
        }
    }
    int kept = 0;
#pragma omp parallel reduction(+ : kept)
    kept += private_value;
    omp_sched_t kind;
    int chunk;
    omp_set_schedule(omp_sched_guided, 6);
    omp_get_schedule(&kind, &chunk);
    double before = omp_get_wtime();
#pragma omp parallel if (counted < 0)
    counted += 100 * omp_get_num_threads();
    printf("asked %d %d %d %d, %d %d, %d %d %d\n", counted, inner, levels, kept, kind == omp_sched_guided, chunk,
           omp_get_max_threads(), omp_in_parallel(), omp_get_wtime() >= before);
}

int main(void)
{
    loops();
    order();
    shares();
    tasks();
    asked();
    return 0;
}
