/* Two threads use halves of a variable that main has initialised. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { HALF = 1 << 20, LINE = 64, ROUNDS = 4 };

static char data[2 * HALF] __attribute__((aligned(8192)));

static void *work(void *argument)
{
    char *half = argument;
    for (int round = 0; round < ROUNDS; round++)
        for (int at = 0; at < HALF; at += LINE)
            half[at]++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    for (int at = 0; at < 2 * HALF; at += LINE)
        data[at] = 1;
    if (pthread_create(&thread, NULL, work, data + HALF))
        return 1;
    work(data);
    pthread_join(thread, NULL);
    for (int at = 0; at < 2 * HALF; at += LINE)
        sum += data[at];
    printf("%ld\n", sum);
    return 0;
}
