/* A stream that a thread leaves open is written out at the end, also where the program's copy of `environ`, which the
 * C library reads on the way, is no longer up to date. */
#include "../harness.h"
#include <unistd.h>

extern char **environ;

/* In the same page. */
static volatile int changed;

static void *leaves_a_stream_open(void *unused)
{
    FILE *stream = fdopen(dup(STDOUT_FILENO), "w");
    REQUIRE(stream);
    fprintf(stream, "the last words of a thread\n");
    return unused;
}

static void *touches_nothing(void *unused)
{
    return unused;
}

static void run(void *(*function)(void *))
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, function, NULL));
    EXPECT(0, pthread_join(id, NULL));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 8, 1);
    REQUIRE(environ);
    run(leaves_a_stream_open);
    /* Threads go to all nodes, which learn with them that the page has changed. */
    for (int i = 0; i < threads; i++) {
        changed++;
        run(touches_nothing);
    }
    EXPECT(threads, changed);
    int result = pass();
    fflush(stdout);
    return result;
}
