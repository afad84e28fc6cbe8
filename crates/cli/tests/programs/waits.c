/* A thread writes to 64 pages of shared memory and says so; main waits for the end of standard input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGES = 64, PAGE = 4096 };

static void *work(void *unused)
{
    char *pages = malloc(PAGES * PAGE);
    for (int i = 0; i < PAGES; i++)
        pages[i * PAGE] = 1;
    puts("ready");
    fflush(stdout);
    return unused;
}

int main(void)
{
    pthread_t thread;
    char byte;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    while (read(0, &byte, 1) > 0)
        ;
    return 3;
}
