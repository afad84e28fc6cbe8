/* A thread reads memory of another node, more than its second cache has, three times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 20, LINE = 32, ROUNDS = 3 };

static void *work(void *argument)
{
    const char *memory = argument;
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int at = 0; at < BYTES; at += LINE)
            sum += memory[at];
    printf("%ld\n", sum);
    return NULL;
}

int main(void)
{
    char *memory = aligned_alloc(4096, BYTES);
    pthread_t thread;
    for (int at = 0; at < BYTES; at += LINE)
        memory[at] = 1;
    if (pthread_create(&thread, NULL, work, memory))
        return 1;
    pthread_join(thread, NULL);
    return 0;
}
