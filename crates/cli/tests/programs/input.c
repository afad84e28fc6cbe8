/* Reads standard input in a thread: by system calls, or through the stream if there is an argument. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int by_stream;

static void *work(void *unused)
{
    static char buffer[1 << 16];
    long total = 0, got;
    if (by_stream) {
        while (total < 10 && getchar() == 7 && fgetc(stdin) == 7)
            total += 2;
        while ((got = fread(buffer, 1, sizeof buffer, stdin)) > 0)
            total += got;
        total -= !feof(stdin);
    } else
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
