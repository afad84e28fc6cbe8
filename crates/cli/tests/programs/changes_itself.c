/* Two threads call a function, which the first of them changes between the calls: the constant that it returns. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 2, PAGE = 4096, BEFORE = 0x1234567, AFTER = 0x7654321 };

__attribute__((noinline, aligned(4096))) static int constant(void)
{
    int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "i"(BEFORE));
    return value;
}
static int (*volatile function)(void) = constant;
static pthread_barrier_t barrier;
static int seen[THREADS];

static void change(void)
{
    unsigned char *code = (unsigned char *)(uintptr_t)constant;
    int before = BEFORE, after = AFTER;
    if (mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    while (memcmp(code, &before, sizeof before))
        code++;
    memcpy(code, &after, sizeof after);
    mprotect((void *)(uintptr_t)constant, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void *work(void *self)
{
    long number = (long)self;
    seen[number] = function();
    pthread_barrier_wait(&barrier);
    if (number == 0)
        change();
    pthread_barrier_wait(&barrier);
    seen[number] = function() - seen[number];
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    int changed = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        changed += seen[i] == AFTER - BEFORE;
    }
    printf("%d of %d threads have run changed code\n", changed, THREADS);
}
