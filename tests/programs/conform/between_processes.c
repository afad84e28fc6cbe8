/* A mutex with a condition, a read-write lock, a barrier and a spin lock in memory that processes share order the threads of a program and its
 * children. */
#include "../harness.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, TURNS = 100 };

struct common {
    pthread_mutex_t mutex;
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

static long work_with_child(int self)
{
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
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(common != MAP_FAILED);
    pthread_mutexattr_t of_mutex;
    EXPECT(0, pthread_mutexattr_init(&of_mutex));
    EXPECT(0, pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED));
    EXPECT(0, pthread_mutex_init(&common->mutex, &of_mutex));
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
