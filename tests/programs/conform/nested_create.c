/* Threads that create threads, three levels deep; some are joined by another thread than their creator. */
#include "../harness.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long leaves;
static pthread_t orphans[MAX_THREADS];

static void *leaf(void *argument)
{
    pthread_mutex_lock(&mutex);
    leaves++;
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *middle(void *argument)
{
    pthread_t id[3];
    for (int i = 0; i < 3; i++)
        EXPECT(0, pthread_create(&id[i], NULL, leaf, (void *)(intptr_t)i));
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        EXPECT(0, pthread_join(id[i], &result));
        EXPECT(i, (intptr_t)result);
    }
    return argument;
}

static long work(int self)
{
    pthread_t id;
    void *result = NULL;
    EXPECT(0, pthread_create(&id, NULL, middle, (void *)(intptr_t)(self + 7)));
    EXPECT(0, pthread_create(&orphans[self], NULL, leaf, (void *)(intptr_t)self));
    EXPECT(0, pthread_join(id, &result));
    EXPECT(self + 7, (intptr_t)result);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    run_threads(threads, work);
    for (int i = 0; i < threads; i++) {
        void *result = NULL;
        EXPECT(0, pthread_join(orphans[i], &result));
        EXPECT(i, (intptr_t)result);
    }
    EXPECT(threads * 4, leaves);
    return pass();
}
