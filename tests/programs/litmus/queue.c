/* A bounded queue: half of the threads produce heap blocks, the other half check and free them. */
#include "../harness.h"

enum { CAPACITY = 7 };
struct item {
    uint32_t seed;
    uint32_t length;
    unsigned char data[];
};
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty;
    struct item *slot[CAPACITY];
    int head, used;
    int producers;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .not_full = PTHREAD_COND_INITIALIZER,
           .not_empty = PTHREAD_COND_INITIALIZER};
static long consumed[MAX_THREADS];

static void put(struct item *item)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.used == CAPACITY)
        pthread_cond_wait(&queue.not_full, &queue.mutex);
    queue.slot[(queue.head + queue.used++) % CAPACITY] = item;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.mutex);
}

/* The next item, or null when the producers have ended and the queue is empty. */
static struct item *take(void)
{
    struct item *item = NULL;
    pthread_mutex_lock(&queue.mutex);
    while (queue.used == 0 && queue.producers > 0)
        pthread_cond_wait(&queue.not_empty, &queue.mutex);
    if (queue.used > 0) {
        item = queue.slot[queue.head];
        queue.head = (queue.head + 1) % CAPACITY;
        queue.used--;
        pthread_cond_signal(&queue.not_full);
    }
    pthread_mutex_unlock(&queue.mutex);
    return item;
}

static void produce(int self)
{
    uint32_t state = (uint32_t)self + 1;
    for (long i = 0; i < iterations; i++) {
        uint32_t length = 1 + next_random(&state) % 3000, seed = next_random(&state), fill = seed;
        struct item *item = malloc(sizeof *item + length);
        item->seed = seed;
        item->length = length;
        for (uint32_t k = 0; k < length; k++)
            item->data[k] = (unsigned char)next_random(&fill);
        put(item);
    }
    pthread_mutex_lock(&queue.mutex);
    if (--queue.producers == 0)
        pthread_cond_broadcast(&queue.not_empty);
    pthread_mutex_unlock(&queue.mutex);
}

static long consume(int self)
{
    long violations = 0;
    struct item *item;
    while ((item = take()) != NULL) {
        uint32_t fill = item->seed;
        for (uint32_t k = 0; k < item->length; k++)
            violations += item->data[k] != (unsigned char)next_random(&fill);
        free(item);
        consumed[self]++;
    }
    return violations;
}

static long work(int self)
{
    if (self % 2)
        return consume(self);
    produce(self);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    threads += threads % 2;
    queue.producers = threads / 2;
    long violations = run_threads(threads, work), total = 0;
    for (int i = 0; i < threads; i++)
        total += consumed[i];
    EXPECT(threads / 2 * iterations, total);
    return verdict(violations, "an item was damaged");
}
