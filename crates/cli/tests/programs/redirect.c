/* Standard streams that are redirected, restored and closed, in main and in a thread: for every thread.
 * One step at a time; each step is a thread, so that they run on all nodes in turn. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int saved;

static void require(int condition, const char *what)
{
    if (!condition) {
        dprintf(saved, "FAIL %s\n", what);
        _exit(1);
    }
}

static void *say(void *what)
{
    printf("%s by printf\n", (char *)what);
    fflush(stdout);
    dprintf(1, "%s by dprintf\n", (char *)what);
    require(write(1, what, strlen(what)) == (ssize_t)strlen(what), what);
    require(write(1, "\n", 1) == 1, what);
    fprintf(stderr, "%s to standard error\n", (char *)what);
    return NULL;
}

static void in_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    require(pthread_create(&thread, NULL, work, argument) == 0, "pthread_create");
    require(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void everybody_says(char *what)
{
    say(what);
    for (int i = 0; i < 5; i++)
        in_thread(say, what);
}

static void *reopen(void *path)
{
    require(freopen(path, "w", stdout) == stdout, path);
    return NULL;
}

static void *replace(void *path)
{
    fflush(stdout);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd > 2 && dup2(fd, 1) == 1 && close(fd) == 0, path);
    return NULL;
}

static void *close_and_open(void *path)
{
    fflush(stdout);
    require(close(1) == 0 && write(1, "x", 1) == -1, "closed");
    require(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 1, path);
    return NULL;
}

static void *restore(void *unused)
{
    fflush(stdout);
    require(dup2(saved, 1) == 1, "restore");
    return unused;
}

static void *finds_it_closed(void *unused)
{
    require(write(1, "x", 1) == -1, "write to closed output");
    return unused;
}

static void *reads(void *unused)
{
    char bytes[5] = "";
    require(read(0, bytes, 4) == 4, "read");
    printf("read %s\n", bytes);
    return unused;
}

static void show(const char *path)
{
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    require(file != NULL, path);
    while (getline(&line, &size, file) > 0)
        printf("%s: %s", path, line);
    free(line);
    fclose(file);
    remove(path);
}

int main(void)
{
    char *paths[] = {"one", "two", "three", "four", "five", "six"};
    saved = dup(1);
    void *(*ways[])(void *) = {reopen, replace, close_and_open};
    for (int i = 0; i < 6; i++) {
        if (i < 3)
            ways[i](paths[i]);
        else
            in_thread(ways[i - 3], paths[i]);
        everybody_says(paths[i]);
        if (i % 2)
            restore(NULL);
        else
            in_thread(restore, NULL);
        printf("%s is done\n", paths[i]);
    }
    for (int i = 0; i < 6; i++)
        show(paths[i]);
    /* Both into one file. */
    require(freopen("errors", "w", stderr) == stderr, "errors");
    setvbuf(stderr, NULL, _IONBF, 0);
    replace("outputs");
    require(dup2(1, 2) == 2, "2>&1");
    everybody_says("both");
    fflush(stdout);
    require(close(1) == 0, "close");
    for (int i = 0; i < 4; i++)
        in_thread(finds_it_closed, NULL);
    restore(NULL);
    show("outputs");
    show("errors");
    int ends[2];
    require(pipe(ends) == 0 && write(ends[1], "abcdefghijklmnop", 16) == 16 && dup2(ends[0], 0) == 0, "pipe");
    for (int i = 0; i < 4; i++)
        in_thread(reads, NULL);
    return 0;
}
