/* The environment is one for all threads, wherever they run; so are the pointers that getenv gives. */
#include "../harness.h"
#include <sys/wait.h>
#include <unistd.h>

static char put[32] = "PUT=first";
static const char *seen[MAX_THREADS];
static pthread_barrier_t all;

/* Each thread in turn changes something, and all look at it. */
static long turns(int self)
{
    long wrong = 0;
    for (int turn = 0; turn < threads; turn++) {
        char value[32];
        snprintf(value, sizeof value, "value-%d", turn);
        if (self == turn) {
            EXPECT(0, setenv("TURN", value, 1));
            EXPECT(0, setenv("TURN", "never", 0));
            seen[turn] = getenv("TURN");
            snprintf(put, sizeof put, "PUT=of-%d", turn);
            EXPECT(0, turn % 2 ? putenv(put) : unsetenv("PUT"));
        }
        pthread_barrier_wait(&all);
        const char *got = getenv("TURN"), *other = getenv("PUT");
        wrong += got == NULL || strcmp(got, value) != 0 || got != seen[turn] || strcmp(seen[0], "value-0") != 0;
        if (turn % 2)
            wrong += other == NULL || other != put + 4 || strcmp(other, put + 4) != 0;
        else
            wrong += other != NULL;
        pthread_barrier_wait(&all);
    }
    return wrong;
}

/* Each thread has a variable of its own, all at once; many are removed again. */
static long at_once(int self)
{
    for (int i = 0; i < iterations; i++) {
        char name[32], value[32];
        snprintf(name, sizeof name, "OWN_%d_%d", self, i % 7);
        snprintf(value, sizeof value, "%d", i);
        EXPECT(0, setenv(name, value, 1));
        if (i % 3 == 0)
            EXPECT(0, unsetenv(name));
    }
    return 0;
}

static long counted[MAX_THREADS];

static long count(int self)
{
    for (int thread = 0; thread < threads; thread++)
        for (int i = 0; i < 7; i++) {
            char name[32];
            snprintf(name, sizeof name, "OWN_%d_%d", thread, i);
            const char *value = getenv(name);
            counted[self] = counted[self] * 31 + (value ? atol(value) + 1 : 0);
        }
    return 0;
}

/* A shell that the thread starts has the environment, too. */
static long shells(int self)
{
    (void)self;
    char command[128];
    snprintf(command, sizeof command, "test \"$TURN\" = value-%d && test \"$SHELLS\" = yes", threads - 1);
    long wrong = system(command) != 0;
    FILE *pipe = popen("printf %s \"$SHELLS\"", "r");
    char text[16] = "";
    wrong += pipe == NULL || fgets(text, sizeof text, pipe) == NULL || strcmp(text, "yes") != 0;
    wrong += pipe == NULL || pclose(pipe) != 0;
    return wrong;
}

static long clear(int self)
{
    (void)self;
    EXPECT(0, clearenv());
    return getenv("TURN") != NULL;
}

static long cleared(int self)
{
    (void)self;
    return getenv("TURN") != NULL || getenv("PATH") != NULL;
}

static long again(int self)
{
    (void)self;
    return getenv("AFTER") == NULL || strcmp(getenv("AFTER"), "clear") != 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 100);
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    EXPECT(-1, setenv("", "x", 1));
    EXPECT(EINVAL, errno);
    EXPECT(-1, setenv("A=B", "x", 1));
    EXPECT(-1, unsetenv("A=B"));
    EXPECT(EINVAL, errno);
    EXPECT(0, run_threads(threads, turns));
    EXPECT(0, run_threads(threads, at_once));
    EXPECT(0, run_threads(threads, count));
    for (int i = 0; i < threads; i++)
        EXPECT(counted[0], counted[i]);
    EXPECT(0, setenv("SHELLS", "yes", 1));
    EXPECT(0, run_threads(threads, shells));
    EXPECT(0, run_threads(1, clear));
    EXPECT(0, run_threads(threads, cleared));
    EXPECT(0, setenv("AFTER", "clear", 1));
    EXPECT(0, run_threads(threads, again));
    EXPECT(0, run_threads(1, again));
    return pass();
}
