/* Arguments, environment, standard input and a chosen exit status, as seen by main and by a thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count;
static char **arguments;

static void show(const char *who)
{
    for (int i = 1; i < count; i++)
        printf("%s: argument %d is '%s'\n", who, i, arguments[i]);
    const char *path = getenv("PATH");
    printf("%s: PATH is %s\n", who, path && strlen(path) > 0 ? "set" : "not set");
}

static void *thread(void *unused)
{
    (void)unused;
    show("thread");
    fflush(stdout);
    return NULL;
}

int main(int argc, char **argv)
{
    count = argc;
    arguments = argv;
    show("main");
    fflush(stdout);
    pthread_t id;
    if (pthread_create(&id, NULL, thread, NULL) != 0 || pthread_join(id, NULL) != 0)
        return 1;
    char line[100];
    long lines = 0;
    while (fgets(line, sizeof line, stdin))
        lines++;
    printf("lines on standard input: %ld\n", lines);
    return argc > 1 ? atoi(argv[1]) : 0;
}
