/* Store buffering with a mutex for each variable: the two threads of a pair cannot both read 0. */
#include "../harness.h"

static struct variable {
    pthread_mutex_t mutex;
    long value;
    char pad[PAGE];
} *variables;
static long seen[MAX_THREADS];
static pthread_barrier_t barrier;

static long exchange(int self)
{
    struct variable *mine = &variables[self], *other = &variables[self ^ 1];
    pthread_mutex_lock(&mine->mutex);
    mine->value = 1;
    pthread_mutex_unlock(&mine->mutex);
    pthread_mutex_lock(&other->mutex);
    long value = other->value;
    pthread_mutex_unlock(&other->mutex);
    return value;
}

static long work(int self)
{
    long violations = 0;
    bool paired = (self ^ 1) < threads;
    for (long round = 0; round < iterations; round++) {
        if (paired)
            seen[self] = exchange(self);
        pthread_barrier_wait(&barrier);
        if (paired) {
            violations += seen[self] == 0 && seen[self ^ 1] == 0;
            variables[self].value = 0;
        }
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 300);
    variables = calloc(MAX_THREADS, sizeof *variables);
    for (int i = 0; i < MAX_THREADS; i++)
        EXPECT(0, pthread_mutex_init(&variables[i].mutex, NULL));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "both threads of a pair read 0");
}
