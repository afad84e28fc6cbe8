/* Threads count by a function that the program writes to memory: it has an atomic instruction, and the program's file has none. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, ROUNDS = 5000 };

static void (*add)(long *);
static long count;
static pthread_barrier_t barrier;

static void *work(void *unused)
{
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < ROUNDS; round++)
        add(&count);
    return unused;
}

int main(void)
{
    static const unsigned char code[] = {0xf0, 0x48, 0xff, 0x07, 0xc3}; /* lock incq (%rdi); ret */
    void *memory = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof code);
    mprotect(memory, sizeof code, PROT_READ | PROT_EXEC);
    add = (void (*)(long *))(uintptr_t)memory;
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", count);
}
