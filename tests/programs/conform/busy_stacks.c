/* Threads call functions of the C library that allocate memory of their own while threads of other nodes write to the pages
 * of their stacks: nobody may be kept from getting a page by who waits for one inside the allocator. */
#include "../harness.h"

#define NUMBERS 400

static int *volatile places[MAX_THREADS];
static pthread_barrier_t barrier;

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorting this much takes memory of the C library's; the frames of its functions are near the place that others write. */
static long sorts(uint32_t *random)
{
    int numbers[NUMBERS];
    long wrong = 0;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (int)next_random(random);
    qsort(numbers, NUMBERS, sizeof numbers[0], by_value);
    for (int i = 1; i < NUMBERS; i++)
        wrong += numbers[i - 1] > numbers[i];
    return wrong;
}

static long work(int self)
{
    int mine[8] = {0};
    uint32_t random = (uint32_t)self + 1;
    long wrong = 0;
    pthread_mutex_t *fresh = malloc((size_t)iterations * sizeof *fresh);
    REQUIRE(fresh);
    places[self] = mine;
    pthread_barrier_wait(&barrier);
    int *other = places[(self + 1) % threads];
    for (long i = 0; i < iterations; i++) {
        wrong += sorts(&random);
        __atomic_fetch_add(&other[i % 8], 1, __ATOMIC_SEQ_CST);
        EXPECT(0, pthread_mutex_init(&fresh[i], NULL));
        EXPECT(0, pthread_mutex_lock(&fresh[i]));
        EXPECT(0, pthread_mutex_unlock(&fresh[i]));
    }
    pthread_barrier_wait(&barrier);
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += __atomic_load_n(&mine[i], __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&barrier);
    free(fresh);
    return wrong + (sum != iterations);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "numbers were lost");
}
