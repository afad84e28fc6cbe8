/* Independent reads of independent writes: two readers cannot see two writes in opposite orders. */
#include "../harness.h"

static struct variable {
    pthread_mutex_t mutex;
    long value;
    char pad[PAGE];
} x = {.mutex = PTHREAD_MUTEX_INITIALIZER}, y = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct {
    long first, second;
} seen[MAX_THREADS];
static pthread_barrier_t barrier;

static long get(struct variable *v)
{
    pthread_mutex_lock(&v->mutex);
    long value = v->value;
    pthread_mutex_unlock(&v->mutex);
    return value;
}

static void set(struct variable *v, long value)
{
    pthread_mutex_lock(&v->mutex);
    v->value = value;
    pthread_mutex_unlock(&v->mutex);
}

/* Threads 0 and 1 write; the even others read x then y, the odd ones y then x. */
static void step(int self, long round)
{
    if (self < 2) {
        set(self == 0 ? &x : &y, round);
        return;
    }
    seen[self].first = get(self % 2 ? &y : &x);
    seen[self].second = get(self % 2 ? &x : &y);
}

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        step(self, round);
        pthread_barrier_wait(&barrier);
        if (self >= 2 && self % 2 == 0)
            for (int other = 3; other < threads; other += 2)
                violations += seen[self].first == round && seen[self].second < round &&
                              seen[other].first == round && seen[other].second < round;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "two readers saw the writes in opposite orders");
}
