/* Uses, in threads, streams that main has opened, by code that the compiler puts in place of calls. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static FILE *from, *to;

static void *copy(void *unused)
{
    long count = 0;
    while (!feof_unlocked(from)) {
        int byte = getc_unlocked(from);
        if (byte != EOF)
            count += putc_unlocked(byte ^ 1, to) == (byte ^ 1);
    }
    printf("%ld, %d, %d\n", count, ferror_unlocked(from), ferror_unlocked(to));
    return unused;
}

static void *fail(void *unused)
{
    putc_unlocked('x', from);
    printf("%d\n", ferror_unlocked(from) != 0);
    return unused;
}

static void run(void *(*function)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

int main(void)
{
    char text[300];
    from = fopen(__FILE__, "r");
    to = tmpfile();
    if (getc_unlocked(from) != '/')
        return 1;
    run(copy);
    /* It is at its end for all until main goes back, or puts a byte back, or opens another file in its place. */
    run(copy);
    rewind(from);
    run(copy);
    run(copy);
    ungetc('y', from);
    run(copy);
    run(copy);
    fclose(from);
    from = fopen("/proc/self/comm", "r");
    run(copy);
    run(copy);
    run(fail);
    clearerr(from);
    run(copy);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    fseek(to, 0, SEEK_END);
    printf("%ld %.80s\n", ftell(to), text);
    return 0;
}
