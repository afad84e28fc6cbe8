/* What Intel's compilers call and clang does not: loops over teams and threads at once, and locks by their internal names. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Places are described to the runtime by such a block. */
static struct place {
    int reserved, flags, reserved2, reserved3;
    const char *source;
} place = {0, 2, 0, 0, ";unknown;unknown;0;0;;"};

int __kmpc_global_thread_num(void *);
void __kmpc_dist_for_static_init_4(void *, int, int, int *, int *, int *, int *, int *, int, int);
void __kmpc_dist_for_static_init_8u(void *, int, int, int *, uint64_t *, uint64_t *, uint64_t *, int64_t *, int64_t, int64_t);
void __kmpc_team_static_init_4(void *, int, int *, int *, int *, int *, int, int);
void __kmpc_dist_dispatch_init_4(void *, int, int, int *, int, int, int, int);
int __kmpc_dispatch_next_4(void *, int, int *, int *, int *, int *);
void __kmpc_for_static_fini(void *, int);
void __kmpc_init_lock_with_hint(void *, int, void **, uintptr_t);
void __kmpc_init_nest_lock_with_hint(void *, int, void **, uintptr_t);
void __kmpc_set_lock(void *, int, void **);
void __kmpc_unset_lock(void *, int, void **);
int __kmpc_test_lock(void *, int, void **);
void __kmpc_destroy_lock(void *, int, void **);
void __kmpc_set_nest_lock(void *, int, void **);
void __kmpc_unset_nest_lock(void *, int, void **);
int __kmpc_test_nest_lock(void *, int, void **);
void __kmpc_destroy_nest_lock(void *, int, void **);

enum { LENGTH = 1000, STATIC_CHUNKED = 33, STATIC = 34, DYNAMIC = 35 };

static int counts[LENGTH], lasts;

static void show(const char *what)
{
    long sum = 0, wrong = 0;
    for (int i = 0; i < LENGTH; i++) {
        sum += (long)i * counts[i];
        wrong += counts[i] != (i % 3 == 0);
    }
    printf("%s: sum %ld, %ld wrong, %d have the last one\n", what, sum, wrong, lasts);
    memset(counts, 0, sizeof counts);
    lasts = 0;
}

static void count(int i)
{
#pragma omp critical(counting)
    counts[i]++;
}

static void at_last(int is_last)
{
#pragma omp critical(counting)
    lasts += is_last != 0;
}

static void fixed(int schedule, int chunk)
{
#pragma omp teams num_teams(2)
#pragma omp parallel
    {
        int thread = __kmpc_global_thread_num(&place);
        int last = 0, from = 0, to = LENGTH - 1, end = LENGTH - 1, stride = 1;
        __kmpc_dist_for_static_init_4(&place, thread, schedule, &last, &from, &to, &end, &stride, 3, chunk);
        for (; from <= end; from += stride, to += stride) {
            for (int i = from; i <= to && i <= end; i += 3)
                count(i);
            if (schedule == STATIC)
                break;
        }
        __kmpc_for_static_fini(&place, thread);
        at_last(last);
    }
}

static void wide(void)
{
    const uint64_t base = UINT64_MAX - 2 * LENGTH;
#pragma omp teams num_teams(2)
#pragma omp parallel
    {
        int thread = __kmpc_global_thread_num(&place), last = 0;
        uint64_t from = base, to = base + LENGTH - 1, end = base + LENGTH - 1;
        int64_t stride = 1;
        __kmpc_dist_for_static_init_8u(&place, thread, STATIC, &last, &from, &to, &end, &stride, 3, 1);
        for (uint64_t i = from; i <= to && i <= end; i += 3)
            count((int)(i - base));
        __kmpc_for_static_fini(&place, thread);
        at_last(last);
    }
}

static void chunks_of_teams(void)
{
#pragma omp teams num_teams(2)
    {
        int thread = __kmpc_global_thread_num(&place);
        int last = 0, from = 0, to = LENGTH - 1, stride = 1;
        __kmpc_team_static_init_4(&place, thread, &last, &from, &to, &stride, 3, 7);
        for (; from < LENGTH; from += stride, to += stride)
            for (int i = from; i <= to && i < LENGTH; i += 3)
                count(i);
        at_last(last);
    }
}

static void dealt(void)
{
#pragma omp teams num_teams(2)
#pragma omp parallel
    {
        int thread = __kmpc_global_thread_num(&place);
        int of_team = 0, last = 0, from, to, stride;
        __kmpc_dist_dispatch_init_4(&place, thread, DYNAMIC, &of_team, 0, LENGTH - 1, 3, 5);
        while (__kmpc_dispatch_next_4(&place, thread, &last, &from, &to, &stride))
            for (int i = from; i <= to; i += 3)
                count(i);
    }
}

static void locks(void)
{
    static void *lock, *nest;
    static long shared, nested;
    int thread = __kmpc_global_thread_num(&place);
    __kmpc_init_lock_with_hint(&place, thread, &lock, omp_lock_hint_contended);
    __kmpc_init_nest_lock_with_hint(&place, thread, &nest, omp_lock_hint_none);
#pragma omp parallel
    {
        int me = __kmpc_global_thread_num(&place);
        for (int i = 0; i < 100; i++) {
            __kmpc_set_lock(&place, me, &lock);
            shared++;
            __kmpc_unset_lock(&place, me, &lock);
            while (!__kmpc_test_lock(&place, me, &lock))
                ;
            shared++;
            __kmpc_unset_lock(&place, me, &lock);
            __kmpc_set_nest_lock(&place, me, &nest);
            nested += __kmpc_test_nest_lock(&place, me, &nest);
            __kmpc_unset_nest_lock(&place, me, &nest);
            __kmpc_unset_nest_lock(&place, me, &nest);
        }
    }
    __kmpc_destroy_lock(&place, thread, &lock);
    __kmpc_destroy_nest_lock(&place, thread, &nest);
    omp_lock_t hinted;
    omp_nest_lock_t hinted_nest;
    omp_init_lock_with_hint(&hinted, omp_lock_hint_speculative);
    omp_init_nest_lock_with_hint(&hinted_nest, omp_lock_hint_uncontended);
    long with_hints = 0;
#pragma omp parallel
    for (int i = 0; i < 100; i++) {
        omp_set_lock(&hinted);
        omp_set_nest_lock(&hinted_nest);
        with_hints++;
        omp_unset_nest_lock(&hinted_nest);
        omp_unset_lock(&hinted);
    }
    omp_destroy_lock(&hinted);
    omp_destroy_nest_lock(&hinted_nest);
    printf("locks: %ld %ld %ld\n", shared, nested, with_hints);
}

int main(void)
{
    omp_set_dynamic(0);
    omp_set_num_threads(4);
    for (int round = 0; round < 3; round++) {
        fixed(STATIC, 1);
        show("static");
        fixed(STATIC_CHUNKED, 4);
        show("static, in chunks");
        wide();
        show("unsigned");
        chunks_of_teams();
        show("chunks of teams");
        dealt();
        show("dynamic");
    }
    locks();
    return 0;
}
