/* Uses, in a thread, streams that main has opened, by code that the compiler puts in place of calls. */
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
    putc_unlocked('x', from);
    printf("%d\n", ferror_unlocked(from) != 0);
    return unused;
}

int main(void)
{
    char text[300];
    pthread_t thread;
    from = fopen(__FILE__, "r");
    to = tmpfile();
    if (getc_unlocked(from) != '/')
        return 1;
    pthread_create(&thread, NULL, copy, NULL);
    pthread_join(thread, NULL);
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    printf("%zd %.80s\n", (size_t)ftell(to), text);
    return 0;
}
