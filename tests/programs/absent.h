/* System calls on memory that another thread has used last: on several nodes the page is not here when the call is made.
 * A job has the other thread write its input, then calls what it is about, and looks at the result. */
#ifndef TESTS_ABSENT_H
#define TESTS_ABSENT_H

#include "harness.h"

/* Each job has this much memory of its own, in pages of its own. */
enum { ROOM = 4 * PAGE };

struct job {
    const char *name;
    void (*before)(char *memory);
    void (*use)(char *memory);
};

static const struct job *jobs;
static int job_count;
static char *memories;
static pthread_barrier_t absent_barrier;

/* Threads take turns: one prepares, the next uses. */
static long absent_work(int self)
{
    for (int turn = 0; turn < threads; turn++) {
        if (self == turn) {
            memset(memories, 0, (size_t)job_count * ROOM);
            for (int i = 0; i < job_count; i++)
                if (jobs[i].before)
                    jobs[i].before(memories + i * ROOM);
        }
        pthread_barrier_wait(&absent_barrier);
        if (self == (turn + 1) % threads)
            for (int i = 0; i < job_count; i++)
                jobs[i].use(memories + i * ROOM);
        pthread_barrier_wait(&absent_barrier);
    }
    return 0;
}

static int run_jobs(const struct job *all, int count)
{
    jobs = all;
    job_count = count;
    memories = aligned_alloc(PAGE, (size_t)count * ROOM);
    EXPECT(0, pthread_barrier_init(&absent_barrier, NULL, threads));
    run_threads(threads, absent_work);
    free(memories);
    return pass();
}

/* A call that must succeed, or fail for another reason than the memory. */
#define REACHES(call)                                                           \
    do {                                                                        \
        errno = 0;                                                              \
        if ((long)(call) == -1 && errno == EFAULT)                              \
            fail("line %d: %s: bad address", __LINE__, #call);                  \
    } while (0)

#endif
