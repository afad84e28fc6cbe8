/* A million blocks, of which each thread keeps some, from many places of its stack. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, BLOCKS = 125000, KEPT = 5000 };

__attribute__((noinline)) static unsigned char *make(unsigned depth, size_t bytes)
{
    unsigned char *block = depth == 0 ? malloc(bytes) : make(depth - 1, bytes);
    if (depth == 0)
        memset(block, (int)(bytes & 0xff), bytes);
    __asm__ volatile("" ::"r"(block));
    return block;
}

static void *work(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument + 1, sum = 0;
    unsigned char **kept = calloc(KEPT, sizeof *kept);
    size_t *bytes = calloc(KEPT, sizeof *bytes);
    for (int i = 0; i < BLOCKS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int place = (int)((state >> 33) % KEPT);
        if (kept[place] != NULL)
            sum += kept[place][bytes[place] - 1];
        free(kept[place]);
        bytes[place] = (state >> 40) % 300 + 1;
        kept[place] = make((unsigned)((state >> 50) % 16), bytes[place]);
    }
    for (int place = 0; place < KEPT; place++)
        free(kept[place]);
    free(kept);
    free(bytes);
    return (void *)(uintptr_t)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    for (uintptr_t self = 0; self < THREADS; self++)
        pthread_create(&threads[self], NULL, work, (void *)self);
    for (int self = 0; self < THREADS; self++) {
        void *result;
        pthread_join(threads[self], &result);
        sum = sum * 31 + (uintptr_t)result;
    }
    printf("%llx\n", (unsigned long long)sum);
    return 0;
}
