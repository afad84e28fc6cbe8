/* main ends while threads read what never comes, from streams that they or main have opened. */
#include "../harness.h"

#include <unistd.h>

static FILE *never;
static pthread_barrier_t all;

static FILE *without_writing(void)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    return fdopen(ends[0], "r");
}

static void *reads(void *unused)
{
    char line[100];
    pthread_barrier_wait(&all);
    fail("%s has come", fgets(line, sizeof line, never) ? line : "the end");
    return unused;
}

static void *reads_own(void *unused)
{
    char line[100];
    FILE *own = without_writing();
    pthread_barrier_wait(&all);
    fail("%s has come", fgets(line, sizeof line, own) ? line : "the end");
    return unused;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    never = without_writing();
    EXPECT(0, pthread_barrier_init(&all, NULL, threads + 1));
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        EXPECT(0, pthread_create(&thread, NULL, i % 2 ? reads_own : reads, NULL));
    }
    pthread_barrier_wait(&all);
    /* Mostly they have begun to read by then; it is right if they have not. */
    usleep(20 * 1000);
    return pass();
}
