/* Uses, in a thread, a stream that main has opened, by code that the compiler puts in place of a call. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static void *work(void *stream)
{
    return (void *)(long)getc_unlocked((FILE *)stream);
}

int main(void)
{
    pthread_t thread;
    FILE *stream = fopen("/proc/self/exe", "r");
    getc(stream);
    pthread_create(&thread, NULL, work, stream);
    pthread_join(thread, NULL);
    return 0;
}
