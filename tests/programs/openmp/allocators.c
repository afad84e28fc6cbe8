/* OpenMP's allocators: blocks are aligned, shared, and freed by any thread; a pool has room for so many, whichever threads take them, and all of
 * it is free again when they are given back. */
#include "../harness.h"
#include <omp.h>
#include <stdint.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

enum { SIZE = 200, MOST = 1000 };

static char *blocks[MOST];
static int taken;

/* Takes blocks until there are no more. */
static void take_all(omp_allocator_handle_t pool)
{
    char *block;
    while ((block = omp_alloc(SIZE, pool)) != NULL) {
        memset(block, omp_get_thread_num(), SIZE);
        int index;
#pragma omp critical
        index = taken++;
        if (index >= MOST)
            fail("a pool without an end");
        blocks[index] = block;
    }
}

static void pools(void)
{
    omp_alloctrait_t traits[] = {{omp_atk_pool_size, 400 * SIZE}, {omp_atk_fallback, omp_atv_null_fb}};
    omp_allocator_handle_t pool = omp_init_allocator(omp_default_mem_space, 2, traits);
    CHECK(pool != omp_null_allocator, "no pool");
    CHECK(omp_alloc(401 * SIZE, pool) == NULL, "more than the pool");
    take_all(pool);
    int alone = taken;
    CHECK(alone > 200 && alone <= 400, "%d blocks", alone);
    for (int i = 0; i < alone; i++)
        omp_free(blocks[i], pool);
    for (int round = 0; round < iterations; round++) {
        taken = 0;
#pragma omp parallel num_threads(threads)
        {
            take_all(pool);
#pragma omp barrier
            /* Mostly another thread's. */
#pragma omp for schedule(static, 1)
            for (int i = 0; i < taken; i++)
                omp_free(blocks[i], omp_null_allocator);
        }
        CHECK(taken == alone, "round %d: %d blocks of %d", round, taken, alone);
    }
    traits[1] = (omp_alloctrait_t){omp_atk_fallback, omp_atv_default_mem_fb};
    omp_allocator_handle_t usual = omp_init_allocator(omp_default_mem_space, 2, traits);
    void *large = omp_alloc(1000 * SIZE, usual);
    CHECK(large != NULL, "the usual allocator is asked");
    omp_free(large, usual);
    omp_alloctrait_t two[] = {
        {omp_atk_pool_size, 10 * SIZE}, {omp_atk_fallback, omp_atv_allocator_fb}, {omp_atk_fb_data, (omp_uintptr_t)pool}};
    omp_allocator_handle_t other = omp_init_allocator(omp_default_mem_space, 3, two);
    taken = 0;
    take_all(other);
    CHECK(taken > alone && taken <= alone + 10, "both have %d blocks", taken);
    for (int i = 0; i < taken; i++)
        omp_free(blocks[i], other);
    omp_destroy_allocator(other);
    omp_destroy_allocator(usual);
    omp_destroy_allocator(pool);
}

static void alignment(void)
{
    omp_alloctrait_t trait = {omp_atk_alignment, 256};
    omp_allocator_handle_t aligned = omp_init_allocator(omp_large_cap_mem_space, 1, &trait);
#pragma omp parallel num_threads(threads)
    for (int size = 1; size < 3000; size += 500) {
        char *block = omp_calloc(size, 3, aligned), *more = omp_aligned_alloc(1024, size, aligned);
        CHECK((uintptr_t)block % 256 == 0 && (uintptr_t)more % 1024 == 0, "%p and %p are not aligned", (void *)block, (void *)more);
        for (int i = 0; i < 3 * size; i++)
            CHECK(block[i] == 0, "not zero");
        memset(block, size % 100, 3 * size);
        block = omp_realloc(block, 10 * size, omp_default_mem_alloc, aligned);
        CHECK(block[0] == size % 100 && block[3 * size - 1] == size % 100, "what was in a block is lost");
        omp_free(block, omp_null_allocator);
        omp_free(more, aligned);
    }
    omp_destroy_allocator(aligned);
    CHECK(omp_alloc(0, omp_default_mem_alloc) == NULL, "a block of no bytes");
    volatile size_t half = SIZE_MAX / 2;
    CHECK(omp_calloc(half, 3, omp_default_mem_alloc) == NULL, "more than there is");
}

static void defaults(void)
{
    omp_alloctrait_t trait = {omp_atk_alignment, 512};
    omp_allocator_handle_t aligned = omp_init_allocator(omp_default_mem_space, 1, &trait);
    omp_set_default_allocator(aligned);
#pragma omp parallel num_threads(threads)
    {
        void *block = omp_alloc(10, omp_null_allocator);
        CHECK(omp_get_default_allocator() == aligned && (uintptr_t)block % 512 == 0, "the region's default allocator");
        omp_free(block, omp_null_allocator);
    }
    omp_set_default_allocator(omp_default_mem_alloc);
#ifndef __clang__ /* Natively, a clause of clang 14 that names an allocator crashes. */
    int sum = 0, one = 1;
#pragma omp parallel num_threads(threads) firstprivate(one) allocate(aligned : one) reduction(+ : sum)
    {
        CHECK((uintptr_t)&one % 512 == 0, "a private variable of an allocator");
        sum += one;
    }
    CHECK(sum == threads, "%d of %d", sum, threads);
#endif
    omp_destroy_allocator(aligned);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 10);
    pools();
    alignment();
    defaults();
    return pass();
}
