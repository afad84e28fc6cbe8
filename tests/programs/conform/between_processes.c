/* A mutex with a condition, a read-write lock, a barrier and a spin lock in memory that processes share order the threads of a program and its
 * children. A robust mutex tells of a child that has ended with it. */
#include "shared_memory.h"
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, TURNS = 100 };

struct common {
    pthread_mutex_t mutex, robust;
    pthread_cond_t changed;
    pthread_rwlock_t lock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    long turn, under_lock, under_spin;
};

static struct common *common;

/* All processes and threads take turns. */
static void work(int self, int count)
{
    for (int i = 0; i < TURNS; i++) {
        EXPECT(0, pthread_mutex_lock(&common->mutex));
        while (common->turn % count != self)
            EXPECT(0, pthread_cond_wait(&common->changed, &common->mutex));
        common->turn++;
        EXPECT(0, pthread_cond_broadcast(&common->changed));
        EXPECT(0, pthread_mutex_unlock(&common->mutex));

        EXPECT(0, pthread_rwlock_wrlock(&common->lock));
        common->under_lock++;
        EXPECT(0, pthread_rwlock_unlock(&common->lock));
        EXPECT(0, pthread_rwlock_rdlock(&common->lock));
        REQUIRE(common->under_lock > i);
        EXPECT(0, pthread_rwlock_unlock(&common->lock));

        EXPECT(0, pthread_spin_lock(&common->spin));
        common->under_spin++;
        EXPECT(0, pthread_spin_unlock(&common->spin));

        if (i % 10 == 0) {
            int result = pthread_barrier_wait(&common->barrier);
            REQUIRE(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
            REQUIRE(common->under_lock >= (long)count * (i + 1));
            REQUIRE(common->under_spin >= (long)count * (i + 1));
            pthread_barrier_wait(&common->barrier);
        }
    }
}

/* A child ends while it has the mutex. */
static void lose(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(pthread_mutex_lock(&common->robust));
    int status;
    EXPECT((long)child, (long)waitpid(child, &status, 0));
    EXPECT(0, status);
    EXPECT(EOWNERDEAD, pthread_mutex_lock(&common->robust));
    EXPECT(0, pthread_mutex_consistent(&common->robust));
    EXPECT(0, pthread_mutex_unlock(&common->robust));
}

static long work_with_child(int self)
{
    if (self == 1)
        lose();
    pid_t child = fork();
    if (child == 0) {
        work(THREADS + self, 2 * THREADS);
        _exit(0);
    }
    work(self, 2 * THREADS);
    int status;
    EXPECT((long)child, (long)waitpid(child, &status, 0));
    EXPECT(0, status);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    common = new_shared_memory(sizeof *common);
    init_shared_mutex(&common->mutex, PTHREAD_MUTEX_STALLED);
    init_shared_mutex(&common->robust, PTHREAD_MUTEX_ROBUST);
    pthread_condattr_t of_condition;
    EXPECT(0, pthread_condattr_init(&of_condition));
    EXPECT(0, pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_cond_init(&common->changed, &of_condition));
    pthread_rwlockattr_t of_lock;
    EXPECT(0, pthread_rwlockattr_init(&of_lock));
    EXPECT(0, pthread_rwlockattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_rwlock_init(&common->lock, &of_lock));
    pthread_barrierattr_t of_barrier;
    EXPECT(0, pthread_barrierattr_init(&of_barrier));
    EXPECT(0, pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_barrier_init(&common->barrier, &of_barrier, 2 * THREADS));
    EXPECT(0, pthread_spin_init(&common->spin, PTHREAD_PROCESS_SHARED));
    run_threads(THREADS, work_with_child);
    EXPECT(2 * THREADS * TURNS, common->turn);
    EXPECT(2 * THREADS * TURNS, common->under_lock);
    EXPECT(2 * THREADS * TURNS, common->under_spin);
    return pass();
}
