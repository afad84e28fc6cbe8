/* Reads standard input in a thread: by system calls, or through the stream if there is an argument. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int by_stream;

static void *work(void *unused)
{
    static char buffer[1 << 16];
    long total = 0, got;
    if (by_stream)
        total = getchar() == EOF && fgetc(stdin) == EOF && fread(buffer, 1, 1, stdin) == 0 ? -1 : 1;
    else
        while ((got = read(0, buffer, sizeof buffer)) > 0)
            total += got;
    printf("%ld\n", total);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    by_stream = argc > 1;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
