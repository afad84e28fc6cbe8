/* A thread, 0 for main, replaces the program by a shell, while the others wait. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long who;

static void replace(void)
{
    execl("/nowhere/at/all", "at", "all", NULL);
    printf("not replaced: %s\n", strerror(errno));
    fflush(stdout);
    /* The last arguments are on the stack. */
    char *script = strdup("echo $0 $@ in $PLACE; exit 7"), *environment[] = {"PLACE=there", NULL};
    if (who % 2)
        execle("/bin/sh", "sh", "-c", script, "a", "b", "c", "d", "e", NULL, environment);
    else
        execlp("sh", "sh", "-c", script, "a", "b", "c", "d", "e", NULL);
}

static void *wait_or_replace(void *number)
{
    if ((long)number == who)
        replace();
    pause();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    who = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_or_replace, (void *)(i + 1));
    wait_or_replace(NULL);
    return 0;
}
