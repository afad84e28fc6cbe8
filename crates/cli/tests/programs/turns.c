/* Main writes a number, and a thread on the other node reads it: a hundred times, by turns. With
   an argument, says where the number and the reading function are. */
#include <pthread.h>
#include <stdio.h>

enum { TURNS = 100, PAGE = 4096 };
static struct {
    _Alignas(PAGE) char before[1600];
    volatile long value;
} number;
static struct {
    _Alignas(PAGE) long sum;
    char after[PAGE - sizeof(long)];
} result;
static _Alignas(PAGE) pthread_barrier_t barrier;

__attribute__((noinline)) static long look(void)
{
    return number.value;
}

static void *reads(void *unused)
{
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_barrier_wait(&barrier);
        result.sum += look();
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    (void)arguments;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, reads, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        number.value = turn;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
    printf("%ld\n", result.sum);
    if (count > 1)
        printf("%p %p\n", (void *)&number.value, (void *)look);
    return 0;
}
