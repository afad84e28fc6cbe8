/* Blocks that are allocated in all ways, each way by a function of its own; threads that write bytes of their own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, WORDS = 20000 };

unsigned long *grid;
void *unused;
static pthread_barrier_t barrier;

/* Not the last thing that a function does: that would be no call. */
#define RETURN(expression)                        \
    do {                                          \
        void *result = (expression);              \
        __asm__ volatile("" ::"r"(result));       \
        return result;                            \
    } while (0)

__attribute__((noinline)) static void *make_grid(void) { RETURN(calloc(WORDS, sizeof *grid)); }

__attribute__((noinline)) static void *prepare(void) { RETURN(make_grid()); }

__attribute__((noinline)) static void *make_scratch(int self) { RETURN(malloc(3000 + self)); }

__attribute__((noinline)) static void *make_aligned(void)
{
    void *block = NULL;
    if (posix_memalign(&block, 256, 5000) != 0)
        abort();
    RETURN(block);
}

__attribute__((noinline)) static void *grow(void *block) { RETURN(realloc(block, 70000)); }

__attribute__((noinline)) static void *make_mapping(void)
{
    RETURN(mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

__attribute__((noinline)) static void *make_copy(void) { RETURN(strdup("twelve bytes")); }

__attribute__((noinline)) static void *make_deep(int depth)
{
    if (depth == 0)
        RETURN(malloc(777));
    RETURN(make_deep(depth - 1));
}

static void *work(void *argument)
{
    int self = (int)(long)argument;
    unsigned long sum = 0;
    void *blocks[] = {make_scratch(self), make_aligned(), grow(malloc(100)), make_mapping(), make_copy(), make_deep(30)};
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        *(volatile char *)blocks[i] = (char)i;
    /* The first time, homes may go to whoever writes last. */
    for (int round = 2; round < 5; round++) {
        for (int i = self; i < WORDS; i += THREADS)
            grid[i] = 0x0101010101010101 * (unsigned long)round;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < WORDS; i++)
            sum += grid[i];
        pthread_barrier_wait(&barrier);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned long sum = 0;
    grid = prepare();
    memset(grid, 1, WORDS * sizeof *grid);
    unused = make_scratch(100);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long self = 0; self < THREADS; self++)
        pthread_create(&threads[self], NULL, work, (void *)self);
    for (int self = 0; self < THREADS; self++) {
        void *result;
        pthread_join(threads[self], &result);
        sum += (unsigned long)result;
    }
    printf("%lx\n", sum);
    return 0;
}
