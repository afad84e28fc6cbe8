/* Each thread knows the stacks of all others, on whatever nodes they are. */
#include "../harness.h"

static pthread_barrier_t barrier;
static pthread_t ids[MAX_THREADS];
static char *places[MAX_THREADS];

static void check_all(void)
{
    for (int i = 0; i < threads; i++) {
        pthread_attr_t attributes;
        void *stack = NULL;
        size_t size = 0;
        EXPECT(0, pthread_getattr_np(ids[i], &attributes));
        EXPECT(0, pthread_attr_getstack(&attributes, &stack, &size));
        REQUIRE(places[i] >= (char *)stack && places[i] < (char *)stack + size);
        EXPECT(0, pthread_attr_destroy(&attributes));
    }
}

static long work(int self)
{
    char here;
    places[self] = &here;
    ids[self] = pthread_self();
    pthread_barrier_wait(&barrier);
    check_all();
    pthread_barrier_wait(&barrier);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, threads));
    run_threads(threads, work);
    return pass();
}
