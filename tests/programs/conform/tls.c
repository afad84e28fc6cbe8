/* __thread variables: a copy for each thread, with its initial value. */
#include "../harness.h"

static __thread int initialised = 42;
static __thread long zero[700]; /* more than a page */
static pthread_barrier_t barrier;

static long work(int self)
{
    EXPECT(42, initialised);
    for (int i = 0; i < 700; i++)
        EXPECT(0, zero[i]);
    initialised = self;
    for (int i = 0; i < 700; i++)
        zero[i] = self * 1000 + i;
    pthread_barrier_wait(&barrier);
    EXPECT(self, initialised);
    for (int i = 0; i < 700; i++)
        EXPECT(self * 1000 + i, zero[i]);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    initialised = -1;
    run_threads(threads, work);
    EXPECT(-1, initialised);
    return pass();
}
