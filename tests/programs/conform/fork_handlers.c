/* Handlers of forks (pthread_atfork), which use locks and conditions, set by threads and called for forks of others. */
#include "../harness.h"
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Main and the threads use it by turns. */
static struct area {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    char order[64];
    int calls;
    long counted;
} *area;

static void note(char what)
{
    size_t length = strlen(area->order);
    area->order[length] = what;
    area->order[length + 1] = 0;
}

/* As allocators do it: all locks are taken before a fork, and given back on both sides. */
static void prepare_first(void)
{
    if (pthread_mutex_trylock(&area->mutex) != 0)
        pthread_mutex_lock(&area->mutex);
    note('a');
}

static void parent_first(void)
{
    note('A');
    pthread_cond_broadcast(&area->condition);
    pthread_mutex_unlock(&area->mutex);
}

static void child_first(void)
{
    note('1');
    pthread_mutex_init(&area->mutex, NULL);
}

static void prepare_second(void) { note('b'); }

static void parent_second(void) { note('B'); }

static void child_second(void) { note('2'); }

static long set_second(void)
{
    EXPECT(0, pthread_atfork(prepare_second, parent_second, child_second));
    EXPECT(0, pthread_atfork(NULL, NULL, NULL));
    return 0;
}

static int status_of(pid_t child)
{
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static long fork_here(void)
{
    memset(area->order, 0, sizeof area->order);
    errno = 7;
    pid_t child = fork();
    if (child == 0) {
        int good = strcmp(area->order, "ba12") == 0 && pthread_mutex_lock(&area->mutex) == 0 &&
                   pthread_mutex_unlock(&area->mutex) == 0 && errno == 7;
        pid_t again = fork();
        if (again == 0)
            _exit(strcmp(area->order, "ba12ba12") == 0 ? 5 : 6);
        _exit(good && status_of(again) == 5 ? 3 : 4);
    }
    EXPECT(7, errno);
    EXPECT(3, status_of(child));
    EXPECT(0, strcmp(area->order, "baAB"));
    /* These call none. */
    child = vfork();
    if (child == 0)
        _exit(8);
    EXPECT(8, status_of(child));
    child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        _exit(9);
    EXPECT(9, status_of(child));
    EXPECT(0, system("true"));
    EXPECT(0, strcmp(area->order, "baAB"));
    return 0;
}

static void *count(void *rounds)
{
    for (long round = 0; round < (long)rounds; round++) {
        pthread_mutex_lock(&area->mutex);
        area->counted++;
        pthread_mutex_unlock(&area->mutex);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 3000);
    area = calloc(1, sizeof *area);
    pthread_mutex_init(&area->mutex, NULL);
    pthread_cond_init(&area->condition, NULL);
    EXPECT(0, pthread_atfork(prepare_first, parent_first, child_first));
    EXPECT(0, in_new_thread(set_second));
    pthread_t counting[MAX_THREADS];
    for (int thread = 0; thread < threads; thread++)
        EXPECT(0, pthread_create(&counting[thread], NULL, count, (void *)iterations));
    EXPECT(0, fork_here());
    EXPECT(0, in_new_thread(fork_here));
    EXPECT(0, in_new_thread(fork_here));
    for (int thread = 0; thread < threads; thread++)
        EXPECT(0, pthread_join(counting[thread], NULL));
    EXPECT(threads * iterations, area->counted);
    return pass();
}
