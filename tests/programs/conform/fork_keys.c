/* Threads of all nodes fork: a child has its thread's values of keys, sets others, and its own threads have theirs, with destructors. */
#include "../harness.h"
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t by_main, plain;
static int destroyed[4];

static void destroy(void *value)
{
    __atomic_fetch_add((int *)value, 1, __ATOMIC_SEQ_CST);
}

static void *of_child(void *mine)
{
    if (pthread_getspecific(by_main) || pthread_getspecific(plain))
        return "a new thread has values";
    if (pthread_setspecific(by_main, mine) || pthread_setspecific(plain, mine))
        return "a value cannot be set";
    if (pthread_getspecific(by_main) != mine || pthread_getspecific(plain) != mine)
        return "the values are others";
    return NULL;
}

/* In a child: its exit status. */
static int check(const int *mine, const int *other)
{
    pthread_key_t fresh;
    if (pthread_getspecific(by_main) != mine || pthread_getspecific(plain) != other)
        return 2;
    if (pthread_setspecific(by_main, NULL) || pthread_getspecific(by_main))
        return 3;
    if (pthread_setspecific(plain, mine) || pthread_getspecific(plain) != mine)
        return 4;
    if (pthread_key_create(&fresh, destroy) || pthread_getspecific(fresh) || pthread_setspecific(fresh, mine) ||
        pthread_getspecific(fresh) != mine || pthread_key_delete(fresh))
        return 5;
    pthread_t ids[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&ids[i], NULL, of_child, &destroyed[i]))
            return 6;
    for (int i = 0; i < 4; i++) {
        void *wrong;
        if (pthread_join(ids[i], &wrong) || wrong || destroyed[i] != 1)
            return 7;
    }
    return pthread_getspecific(plain) == mine && pthread_key_delete(plain) == 0 ? 0 : 8;
}

static void *forks(void *unused)
{
    (void)unused;
    int mine, other;
    EXPECT(0, pthread_setspecific(by_main, &mine));
    EXPECT(0, pthread_setspecific(plain, &other));
    pid_t child = fork();
    if (child == 0)
        _exit(check(&mine, &other));
    REQUIRE(child > 0);
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    REQUIRE(pthread_getspecific(by_main) == &mine && pthread_getspecific(plain) == &other);
    EXPECT(0, pthread_setspecific(by_main, NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_key_create(&by_main, destroy));
    EXPECT(0, pthread_key_create(&plain, NULL));
    pthread_t ids[MAX_THREADS];
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, forks, NULL));
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(ids[i], NULL));
    return pass();
}
