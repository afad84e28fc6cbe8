/* The memory of a mutex in a mapped file becomes one that processes share, and of the other kind again, with a condition; threads of all nodes and
 * children use both. */
#include "../harness.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int waits, goes;
};

static struct shared *shared;

/* Waits until `goes`, and holds the mutex once afterwards. */
static int wait_once(int type)
{
    int wrong = pthread_mutex_lock(&shared->mutex) != 0;
    shared->waits = 1;
    while (!shared->goes)
        if (pthread_cond_wait(&shared->changed, &shared->mutex) != 0)
            return 1;
    int again = pthread_mutex_trylock(&shared->mutex);
    wrong |= again != (type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY);
    if (again == 0)
        wrong |= pthread_mutex_unlock(&shared->mutex) != 0;
    return wrong | (pthread_mutex_unlock(&shared->mutex) != 0);
}

static void *wait_in_thread(void *type)
{
    return (void *)(long)wait_once((int)(long)type);
}

static void use(int type, int between, int forks)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t changed;
    pthread_mutexattr_init(&mutex);
    pthread_condattr_init(&changed);
    EXPECT(0, pthread_mutexattr_settype(&mutex, type));
    EXPECT(0, pthread_mutexattr_setpshared(&mutex, between));
    EXPECT(0, pthread_condattr_setpshared(&changed, between));
    EXPECT(0, pthread_mutex_init(&shared->mutex, &mutex));
    EXPECT(0, pthread_cond_init(&shared->changed, &changed));
    shared->waits = shared->goes = 0;

    pthread_t thread;
    pid_t child = 0;
    void *wrong = NULL;
    int status = 0;
    if (!forks) {
        EXPECT(0, pthread_create(&thread, NULL, wait_in_thread, (void *)(long)type));
    } else if ((child = fork()) == 0) {
        _exit(wait_once(type));
    }
    for (int going = 0; !going; usleep(100)) {
        EXPECT(0, pthread_mutex_lock(&shared->mutex));
        going = shared->goes = shared->waits;
        if (going)
            EXPECT(0, pthread_cond_signal(&shared->changed));
        EXPECT(0, pthread_mutex_unlock(&shared->mutex));
    }
    if (forks)
        EXPECT((long)child, (long)waitpid(child, &status, 0));
    else
        EXPECT(0, pthread_join(thread, &wrong));
    EXPECT(0, status);
    EXPECT(0, (long)wrong);
    EXPECT(0, pthread_cond_destroy(&shared->changed));
    EXPECT(0, pthread_mutex_destroy(&shared->mutex));
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE};
    char name[] = "/tmp/objectsXXXXXX";
    int file = mkstemp(name);
    unlink(name);
    EXPECT(0, ftruncate(file, sizeof *shared));
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int round = 0; round < 3; round++)
        for (int type = 0; type < 3; type++) {
            use(types[type], PTHREAD_PROCESS_PRIVATE, 0);
            use(types[type], PTHREAD_PROCESS_SHARED, 0);
            use(types[type], PTHREAD_PROCESS_SHARED, 1);
        }
    return pass();
}
