/* Readers-writer locks, semaphores, conditions and a queue that they make.
 *
 * "rwlock-pairs": a lock for reading and its unlock, by threads of both nodes at the same time. "semaphore-turn" and
 * "condition-turn": what one thread gives the other, and back, halved. "queue-item": an item of 8 bytes from one thread to the other,
 * through 16 places under a mutex, with a condition for each end. */
#include "measure.h"
#include <semaphore.h>

enum { PAIRS = 200000, BATCHES = 5, TURNS = 2000, PLACES = 16, ITEMS = 20000 };

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t to_second, to_first;
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    long first, count;
    long items[PLACES];
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {0}};

static int64_t pairs(void)
{
    int64_t start = now();
    for (long i = 0; i < PAIRS; i++) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    return (now() - start) / PAIRS;
}

static void take_turns(int self)
{
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&turn_mutex);
        while (turn != self)
            pthread_cond_wait(&turn_changed[self], &turn_mutex);
        turn = !self;
        pthread_cond_signal(&turn_changed[!self]);
        pthread_mutex_unlock(&turn_mutex);
    }
}

static void put(long item)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == PLACES)
        pthread_cond_wait(&queue.emptied, &queue.mutex);
    queue.items[(queue.first + queue.count++) % PLACES] = item;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.mutex);
}

static long get(void)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == 0)
        pthread_cond_wait(&queue.filled, &queue.mutex);
    long item = queue.items[queue.first];
    queue.first = (queue.first + 1) % PLACES;
    queue.count--;
    pthread_cond_signal(&queue.emptied);
    pthread_mutex_unlock(&queue.mutex);
    return item;
}

static void first(void)
{
    for (int i = 0; i < BATCHES; i++)
        pairs();
    meet();
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < TURNS; i++) {
            sem_post(&to_second);
            sem_wait(&to_first);
        }
        meet();
        take_turns(0);
        meet();
        for (long i = 0; i < ITEMS; i++)
            put(i);
        meet();
    }
}

static void *second(void *unused)
{
    struct samples reads = new_samples("rwlock-pairs", BATCHES);
    struct samples posts = new_samples("semaphore-turn", BATCHES);
    struct samples signals = new_samples("condition-turn", BATCHES);
    struct samples items = new_samples("queue-item", BATCHES);
    for (int i = 0; i < BATCHES; i++)
        add_sample(&reads, pairs());
    meet();
    for (int batch = 0; batch < BATCHES; batch++) {
        int64_t start = now();
        for (int i = 0; i < TURNS; i++) {
            sem_wait(&to_second);
            sem_post(&to_first);
        }
        add_sample(&posts, (now() - start) / (2 * TURNS));
        meet();
        start = now();
        take_turns(1);
        add_sample(&signals, (now() - start) / (2 * TURNS));
        meet();
        start = now();
        for (long i = 0; i < ITEMS; i++)
            if (get() != i)
                must(1, "items in order");
        add_sample(&items, (now() - start) / ITEMS);
        meet();
    }
    print_samples(&reads);
    print_samples(&posts);
    print_samples(&signals);
    print_samples(&items);
    return unused;
}

int main(void)
{
    must(sem_init(&to_second, 0, 0), "sem_init");
    must(sem_init(&to_first, 0, 0), "sem_init");
    run_pair(first, second);
    return 0;
}
