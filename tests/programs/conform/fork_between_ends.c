/* Threads fork, end in another order than they began, and others take their places: then all of them can still be told of new credentials. */
#include "../harness.h"
#include <sys/wait.h>
#include <unistd.h>

/* Who ends when: those that began first end first, after those in the middle have forked. */
enum { FIRST, MIDDLE, LAST, LATE, GROUPS };

static pthread_barrier_t begun, forked;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ending = -1; /* The group whose threads may end, and those before it. */

static void *lives(void *group_of)
{
    int group = *(int *)group_of;
    if (group != LATE) {
        pthread_barrier_wait(&begun);
        if (group == MIDDLE) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            REQUIRE(child > 0);
            int status = 0;
            EXPECT(child, waitpid(child, &status, 0));
            EXPECT(0, status);
        }
        pthread_barrier_wait(&forked);
    }
    pthread_mutex_lock(&mutex);
    while (ending < group)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void start(pthread_t *ids, int *group)
{
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, lives, group));
}

static void end(pthread_t *ids, int group)
{
    pthread_mutex_lock(&mutex);
    ending = group;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(ids[i], NULL));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    static pthread_t ids[GROUPS][MAX_THREADS];
    static int groups[GROUPS] = {FIRST, MIDDLE, LAST, LATE};
    EXPECT(0, pthread_barrier_init(&begun, NULL, 3 * threads));
    EXPECT(0, pthread_barrier_init(&forked, NULL, 3 * threads + 1));
    for (int group = FIRST; group <= LAST; group++)
        start(ids[group], &groups[group]);
    pthread_barrier_wait(&forked);
    end(ids[FIRST], FIRST);
    end(ids[MIDDLE], MIDDLE);
    start(ids[LATE], &groups[LATE]);
    EXPECT(0, setegid(getegid()));
    EXPECT(0, setuid(getuid()));
    end(ids[LAST], LAST);
    end(ids[LATE], LATE);
    return pass();
}
