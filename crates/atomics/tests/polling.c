/* Programs whose threads wait for each other by plain loads and stores, each in a way of its own, and programs that only look like that:
 * -D with one of the names below. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOAD(at) atomic_load_explicit(&(at), memory_order_acquire)
#define STORE(at, value) atomic_store_explicit(&(at), value, memory_order_release)

struct queue {
    long pad[4];
    int stop, count, limit;
    _Atomic int head, tail;
    int items[64];
};

atomic_int flag, other, flags[64];
volatile int plain;
int done, total, limit = 100;
double data[256], error_left = 1;
struct queue *volatile shared;
struct queue here;
pthread_mutex_t mutex;
pthread_barrier_t barrier;

__attribute__((noinline)) static void work(int by)
{
    for (int i = 0; i < 256; i++)
        data[i] = data[i] * 0.5 + by;
}

__attribute__((noinline)) static int is_ready(struct queue *q)
{
    return LOAD(q->head) != LOAD(q->tail);
}

static inline bool is_set(atomic_int *at, int value)
{
    return atomic_load_explicit(at, memory_order_relaxed) == value;
}

__attribute__((noinline)) static void take(struct queue *q)
{
    q->items[q->count] = 0;
    q->count--;
}

__attribute__((noinline)) static void in_turn(void)
{
    pthread_mutex_lock(&mutex);
    total++;
    pthread_mutex_unlock(&mutex);
}

static void wait_for(struct queue *q, int n)
{
#if defined TIGHT
    while (!LOAD(flag))
        ;
#elif defined RELAXED
    while (atomic_load_explicit(&flag, memory_order_relaxed) != n)
        ;
#elif defined VOLATILE
    while (!plain)
        ;
#elif defined DO_WHILE
    int seen;
    do
        seen = LOAD(flag);
    while (seen < n);
#elif defined PAUSING
    while (!LOAD(flag))
        __builtin_ia32_pause();
#elif defined YIELDING
    while (LOAD(flag) != n)
        sched_yield();
#elif defined SLEEPING
    while (!LOAD(q->head))
        usleep(10);
#elif defined CALLING
    while (!is_ready(q))
        ;
#elif defined INLINED
    while (!is_set(&q->head, n))
        sched_yield();
#elif defined BY_POINTER
    atomic_int *at = &q->head;
    while (!LOAD(*at))
        ;
#elif defined BY_TWO_POINTERS
    while (!LOAD(shared->head))
        ;
#elif defined SEVERAL
    while (!LOAD(flag) || !LOAD(other))
        ;
#elif defined EITHER
    while (!LOAD(flag) && !LOAD(other))
        sched_yield();
#elif defined ELEMENT
    for (int i = 0; i < n; i++)
        while (!LOAD(flags[i]))
            ;
#elif defined FIRST_IN_LOOP
    for (int i = 0; i < n; i += limit) {
        int seen;
        do
            seen = LOAD(flag);
        while (seen != i);
        total++;
        STORE(flag, i + 1);
    }
#elif defined ALL_ELEMENTS
    bool all;
    do {
        all = true;
        for (int i = 0; i < n; i++)
            all &= LOAD(flags[i]) != 0;
    } while (!all);
#elif defined TIMEOUT
    for (long tries = 0; tries < 100000000 && !LOAD(flag); tries++)
        ;
#elif defined DEADLINE
    time_t end = time(NULL) + 10;
    while (!LOAD(flag) && time(NULL) < end)
        ;
#elif defined BACKING_OFF
    for (int wait = 1; !LOAD(flag); wait *= 2)
        for (volatile int i = 0; i < wait; i++)
            ;
#elif defined BETWEEN_WORK
    while (!LOAD(flag))
        work(n);
#elif defined BETWEEN_STORES
    for (long i = 0; !LOAD(q->head); i++)
        data[i % 256] += 1;
#elif defined BETWEEN_LOCKS
    while (!LOAD(flag)) {
        pthread_mutex_lock(&mutex);
        total++;
        pthread_mutex_unlock(&mutex);
    }
#elif defined BETWEEN_PRINTS
    while (!LOAD(flag))
        printf("%d\n", n);
#elif defined PRODUCER
    for (int i = 0; i < n; i++) {
        int tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
        while (tail - LOAD(q->head) == 64)
            ;
        q->items[tail % 64] = i;
        STORE(q->tail, tail + 1);
    }
#elif defined ON_STACK
    volatile int mine = 0;
    shared = (void *)&mine;
    while (!mine)
        ;
#elif defined SEQUENCE
    int before, value;
    do {
        while ((before = LOAD(flag)) % 2)
            ;
        value = atomic_load_explicit(&other, memory_order_acquire);
    } while (LOAD(flag) != before);
    total = value;
    /* Double-checked locking. */
#elif defined LOOKED_AT_TWICE
    if (!LOAD(flag)) {
        pthread_mutex_lock(&mutex);
        if (!atomic_load_explicit(&flag, memory_order_relaxed)) {
            total = n;
            STORE(flag, 1);
        }
        pthread_mutex_unlock(&mutex);
    }
#elif defined MADE_ONCE
    static int *_Atomic once;
    int *made = LOAD(once);
    if (!made) {
        pthread_mutex_lock(&mutex);
        made = atomic_load_explicit(&once, memory_order_relaxed);
        if (!made) {
            made = malloc(sizeof *made);
            *made = n;
            STORE(once, made);
        }
        pthread_mutex_unlock(&mutex);
    }
    total = *made;
#elif defined FIELD_LOOKED_AT_TWICE
    for (int i = 0; i < n; i++)
        if (LOAD(q->head) < limit) {
            pthread_mutex_lock(&mutex);
            if (atomic_load_explicit(&q->head, memory_order_relaxed) < limit) {
                work(i);
                STORE(q->head, i);
            }
            pthread_mutex_unlock(&mutex);
        }
    /* From here on: no synchronisation but by calls. */
#elif defined LIMITED
    if (limit > 0) {
        pthread_mutex_lock(&mutex);
        if (total < limit)
            total++;
        pthread_mutex_unlock(&mutex);
    }
#elif defined OWN_BEFORE
    q->count += n;
    if (q->count > limit) {
        pthread_mutex_lock(&mutex);
        total += q->count;
        if (total > limit)
            total = 0;
        pthread_mutex_unlock(&mutex);
        q->count = 0;
    }
#elif defined LOCKED_TWICE
    pthread_mutex_lock(&mutex);
    bool is_done = done;
    pthread_mutex_unlock(&mutex);
    if (!is_done) {
        work(n);
        pthread_mutex_lock(&mutex);
        if (!done)
            done = 1;
        pthread_mutex_unlock(&mutex);
    }
#elif defined COUNTING
    for (int i = 0; i < limit; i++)
        total += i;
#elif defined LISTED
    struct list {
        struct list *next;
        int value;
    } *at = (void *)q;
    while (at && at->value != limit)
        at = at->next;
    done = at != NULL;
#elif defined UNDER_LOCK
    pthread_mutex_lock(&mutex);
    while (!done) {
        pthread_mutex_unlock(&mutex);
        work(n);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
#elif defined WITH_CONDITION
    static pthread_cond_t condition;
    pthread_mutex_lock(&mutex);
    while (!done)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
#elif defined WITH_BARRIER
    while (error_left > 0.001) {
        work(n);
        if (n == 0)
            error_left = data[3];
        pthread_barrier_wait(&barrier);
    }
#elif defined BARRIER_ELSEWHERE
    while (error_left > 0.001) {
        in_turn();
        pthread_barrier_wait(&barrier);
    }
#elif defined JOBS
    for (;;) {
        pthread_mutex_lock(&mutex);
        int job = total < limit ? total++ : -1;
        pthread_mutex_unlock(&mutex);
        if (job < 0)
            break;
        work(job);
    }
#elif defined DRAINING
    while (q->count > 0)
        take(q);
#elif defined DRAINING_INLINE
    while (here.count > 0) {
        here.items[here.count & 63] = 0;
        here.count--;
    }
#elif defined READING
    int value = 1;
    while (value != 0 && scanf("%d", &value) == 1)
        total += value;
    while (total && scanf("%d", &total) == 1)
        ;
#elif defined SEARCHING
    int low = 0, high = limit;
    while (low < high) {
        int middle = (low + high) / 2;
        if (here.items[middle & 63] < n)
            low = middle + 1;
        else
            high = middle;
    }
    total = low;
#elif defined NEXT_TICK
    struct timespec before, now;
    clock_gettime(CLOCK_MONOTONIC, &before);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_nsec == before.tv_nsec);
    total = (int)now.tv_sec;
#elif defined STATES
    /* An unknown state would go round for ever. */
    while (q->count < q->limit)
        switch (q->stop) {
        case 0:
            q->items[0] += n;
            q->stop = 3;
            break;
        case 1:
            q->stop = q->items[2];
            work(n);
            break;
        case 2:
            q->limit = 0;
            break;
        case 3:
            q->count += q->items[1];
            q->stop = 4;
            break;
        case 4:
            q->items[5]++;
            q->stop = q->items[q->count & 63];
            break;
        }
#else
#error which?
#endif
}

static void *run(void *q)
{
    wait_for(q, 1);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, &here);
    pthread_join(thread, NULL);
    return total;
}
