/* Memory that is mapped shared without a file is the same in a process and its children: counted by all, under a mutex and a semaphore in it. */
#include "shared_memory.h"
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CHILDREN = 2, TURNS = 200 };

struct common {
    pthread_mutex_t mutex;
    sem_t semaphore;
    long under_mutex, under_semaphore;
};

static struct common *common;

static void count(void)
{
    for (int i = 0; i < TURNS; i++) {
        EXPECT(0, pthread_mutex_lock(&common->mutex));
        common->under_mutex++;
        EXPECT(0, pthread_mutex_unlock(&common->mutex));
        EXPECT(0, sem_wait(&common->semaphore));
        common->under_semaphore++;
        EXPECT(0, sem_post(&common->semaphore));
    }
}

static long count_with_children(int self)
{
    (void)self;
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            count();
            _exit(0);
        }
    }
    count();
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        EXPECT((long)children[i], (long)waitpid(children[i], &status, 0));
        EXPECT(0, status);
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    common = new_shared_memory(sizeof *common);
    init_shared_mutex(&common->mutex, PTHREAD_MUTEX_STALLED);
    EXPECT(0, sem_init(&common->semaphore, 1, 1));
    run_threads(THREADS, count_with_children);
    EXPECT(THREADS * (CHILDREN + 1) * TURNS, common->under_mutex);
    EXPECT(THREADS * (CHILDREN + 1) * TURNS, common->under_semaphore);
    EXPECT(0, munmap(common, sizeof *common));
    return pass();
}
