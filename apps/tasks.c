#include "tasks.h"

#include "common.h"

#include <stdlib.h>

/* A ring. The owner works at its end, thieves at its beginning. */
struct queue {
    pthread_mutex_t mutex;
    struct task *ring;
    long first, used, room;
};

static struct queue *queues;

/* Threads that have found all queues empty. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int threads;
    bool done;
} waiting = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void tasks_make(void)
{
    enum { ROOM = 64 };
    queues = must_alloc(sizeof *queues * (size_t)threads);
    for (int i = 0; i < threads; i++) {
        struct queue *q = &queues[i];
        *q = (struct queue){.ring = must_alloc(sizeof *q->ring * ROOM), .room = ROOM};
        pthread_mutex_init(&q->mutex, NULL);
    }
}

/* With the queue's mutex held. */
static void grow(struct queue *q)
{
    struct task *ring = must_alloc(sizeof *ring * (size_t)(2 * q->room));
    for (long i = 0; i < q->used; i++)
        ring[i] = q->ring[(q->first + i) % q->room];
    free(q->ring);
    q->ring = ring;
    q->first = 0;
    q->room *= 2;
}

void tasks_put(int to, const struct task *task)
{
    struct queue *q = &queues[to];
    pthread_mutex_lock(&q->mutex);
    bool was_empty = q->used == 0;
    if (q->used == q->room)
        grow(q);
    q->ring[(q->first + q->used++) % q->room] = *task;
    pthread_mutex_unlock(&q->mutex);
    /* Who waits has seen the queue empty. A task behind another one is taken by the owner at the latest. */
    if (!was_empty)
        return;
    pthread_mutex_lock(&waiting.mutex);
    if (waiting.threads > 0)
        pthread_cond_signal(&waiting.changed);
    pthread_mutex_unlock(&waiting.mutex);
}

static bool take_from(int owner, bool newest, struct task *task)
{
    struct queue *q = &queues[owner];
    pthread_mutex_lock(&q->mutex);
    bool some = q->used > 0;
    if (some && newest)
        *task = q->ring[(q->first + --q->used) % q->room];
    else if (some) {
        *task = q->ring[q->first];
        q->first = (q->first + 1) % q->room;
        q->used--;
    }
    pthread_mutex_unlock(&q->mutex);
    return some;
}

static bool take_from_any(int self, struct task *task)
{
    bool some = take_from(self, true, task);
    for (int i = 1; i < threads && !some; i++)
        some = take_from((self + i) % threads, false, task);
    return some;
}

bool tasks_take(int self, struct task *task)
{
    if (take_from_any(self, task))
        return true;
    pthread_mutex_lock(&waiting.mutex);
    bool some = false;
    while (!waiting.done && !(some = take_from_any(self, task))) {
        /* The last one finds all queues empty, and nobody could put anything into them. */
        if (++waiting.threads == threads) {
            waiting.done = true;
            pthread_cond_broadcast(&waiting.changed);
        } else
            pthread_cond_wait(&waiting.changed, &waiting.mutex);
        waiting.threads--;
    }
    pthread_mutex_unlock(&waiting.mutex);
    return some;
}

void tasks_again(void)
{
    waiting.done = false;
}
