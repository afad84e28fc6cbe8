/* A thread takes over pages that main has written, by writing them without reading them first. Main writes them again once
 * it has got a byte on standard input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGES = 16, WORDS = 4096 / sizeof(long) };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *block)
{
    volatile long *words = block;
    pthread_mutex_lock(&mutex);
    for (int page = 0; page < PAGES; page++)
        words[page * WORDS] = page;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char byte;
    volatile long *words = aligned_alloc(4096, PAGES * 4096);
    for (int page = 0; page < PAGES; page++)
        words[page * WORDS] = 1;
    pthread_create(&thread, NULL, add, (void *)words);
    if (read(0, &byte, 1) != 1)
        return 1;
    /* Another word of each page: no race. */
    for (int page = 0; page < PAGES; page++)
        words[page * WORDS + 1] = 100;
    pthread_join(thread, NULL);
    long sum = 0;
    for (int page = 0; page < PAGES; page++)
        sum += words[page * WORDS] + words[page * WORDS + 1];
    printf("%ld\n", sum);
    return 3;
}
