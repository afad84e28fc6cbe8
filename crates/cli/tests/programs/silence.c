/* Threads that write to standard error, which main has sent to the file named. */
#include <pthread.h>
#include <stdio.h>

static void *complain(void *unused)
{
    fputs("complaint\n", stderr);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !freopen(argv[1], "w", stderr))
        return 1;
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, complain, NULL) || pthread_join(thread, NULL))
            return 1;
    }
    puts("done");
    return 0;
}
