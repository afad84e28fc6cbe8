/* OpenMP: tasks that are finished only when their event is fulfilled: by themselves, by other tasks on any thread, by a thread that
 * is none of OpenMP's, before and after their bodies have ended. */
#include "../harness.h"
#include <omp.h>
#include <unistd.h>

enum { TASKS = 40 };

struct request {
    omp_event_handle_t event;
    int *place;
    int value;
};

/* A device: its thread answers requests some time after they were made. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request requests[TASKS];
static int asked, total;

static void ask(struct request request)
{
    pthread_mutex_lock(&mutex);
    requests[asked++] = request;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void *answer(void *unused)
{
    (void)unused;
    for (int i = 0; i < total; i++) {
        pthread_mutex_lock(&mutex);
        while (asked <= i)
            pthread_cond_wait(&changed, &mutex);
        struct request request = requests[i];
        pthread_mutex_unlock(&mutex);
        if (i % 4 == 0)
            usleep(500);
        *request.place = request.value;
        omp_fulfill_event(request.event);
    }
    return NULL;
}

/* Answers of the device are used by tasks that depend on those that asked. */
static void device(void)
{
    static int answers[TASKS], used[TASKS];
    pthread_t thread;
    memset(answers, 0, sizeof answers);
    memset(used, 0, sizeof used);
    asked = 0;
    total = TASKS;
    EXPECT(0, pthread_create(&thread, NULL, answer, NULL));
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < TASKS; i++) {
            omp_event_handle_t event;
#pragma omp task detach(event) depend(out : answers[i]) firstprivate(i)
            ask((struct request){event, &answers[i], i + 1});
#pragma omp task depend(in : answers[i]) firstprivate(i)
            used[i] = answers[i] * 2;
        }
#pragma omp taskwait
        for (int i = 0; i < TASKS; i++)
            REQUIRE(used[i] == 2 * (i + 1));
    }
    EXPECT(0, pthread_join(thread, NULL));
}

/* Waits in a group, and at a barrier, for events that another task fulfils. */
static void waits(void)
{
    int done = 0, seen = -1;
    omp_event_handle_t first, second, third;
#pragma omp parallel
    {
#pragma omp single
        {
#pragma omp taskgroup
            {
#pragma omp task detach(first) shared(done)
                {
#pragma omp critical
                    done++;
                }
#pragma omp task firstprivate(first) shared(done)
                {
                    usleep(300);
#pragma omp critical
                    done += 10;
                    omp_fulfill_event(first);
                }
            }
#pragma omp critical
            seen = done;
#pragma omp task detach(second) shared(done) /* fulfils its own event */
            {
#pragma omp critical
                done += 100;
                omp_fulfill_event(second);
            }
            /* The barrier waits for this one, whose event is fulfilled by a task that its own child makes. */
#pragma omp task detach(third) shared(done)
            {
#pragma omp task firstprivate(third) shared(done)
                {
#pragma omp task firstprivate(third) shared(done)
                    {
                        usleep(300);
#pragma omp critical
                        done += 1000;
                        omp_fulfill_event(third);
                    }
                }
            }
        }
    }
    EXPECT(11, seen);
    EXPECT(1111, done);
}

/* A task that runs at once has its event fulfilled by itself; one outside all regions, too. */
static void at_once(void)
{
    int done = 0;
#pragma omp parallel
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event) if (0) shared(done)
        {
            done = 1;
            omp_fulfill_event(event);
        }
        EXPECT(1, done);
    }
    omp_event_handle_t event;
#pragma omp task detach(event) shared(done)
    {
        done = 2;
        omp_fulfill_event(event);
    }
    EXPECT(2, done);
}

/* Each thread makes a task whose event the next thread fulfils, before or after its body has run. */
static void crosswise(void)
{
    static omp_event_handle_t events[MAX_THREADS];
    static bool made[MAX_THREADS];
    static int values[MAX_THREADS], after[MAX_THREADS];
    memset(made, 0, sizeof made);
#pragma omp parallel
    {
        const int me = omp_get_thread_num(), next = (me + 1) % omp_get_num_threads();
        omp_event_handle_t event;
#pragma omp task detach(event) depend(out : values[me])
        values[me] = me;
#pragma omp task depend(in : values[me])
        after[me] = values[me] + 1;
        pthread_mutex_lock(&mutex);
        events[me] = event;
        made[me] = true;
        pthread_cond_broadcast(&changed);
        while (!made[next])
            pthread_cond_wait(&changed, &mutex);
        const omp_event_handle_t other = events[next];
        pthread_mutex_unlock(&mutex);
        omp_fulfill_event(other);
    }
    for (int i = 0; i < threads; i++)
        EXPECT(i + 1, after[i]);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    for (long i = 0; i < iterations; i++) {
        device();
        waits();
        crosswise();
    }
    at_once();
    return pass();
}
