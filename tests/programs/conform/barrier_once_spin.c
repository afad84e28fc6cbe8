/* Barriers, pthread_once and spin locks: results, error codes, several objects at once. */
#include "../harness.h"

static pthread_barrier_t barrier, pair[2];
static pthread_once_t once = PTHREAD_ONCE_INIT, second_once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static int initialised, initialised_second;
static int table[1000];
static bool serial[MAX_THREADS];

static void initialise_second(void)
{
    initialised_second++;
}

static void initialise(void)
{
    pthread_once(&second_once, initialise_second); /* nested */
    for (int i = 0; i < 1000; i++)
        table[i] = i * i;
    initialised++;
}

static long work(int self)
{
    EXPECT(0, pthread_once(&once, initialise));
    for (int i = 0; i < 1000; i++)
        REQUIRE(table[i] == i * i);
    int result = pthread_barrier_wait(&barrier);
    REQUIRE(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    serial[self] = result == PTHREAD_BARRIER_SERIAL_THREAD;
    for (int i = 0; i < 50; i++)
        pthread_barrier_wait(&pair[self / 2]);
    return 0;
}

static long try_spin(int self)
{
    (void)self;
    EXPECT(EBUSY, pthread_spin_trylock(&spin));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(EINVAL, pthread_barrier_init(&barrier, NULL, 0));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, 1));
    EXPECT(PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_wait(&barrier));
    EXPECT(PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_wait(&barrier));
    EXPECT(0, pthread_barrier_destroy(&barrier));

    EXPECT(0, pthread_barrier_init(&barrier, NULL, 4)); /* the same address again, with another count */
    EXPECT(0, pthread_barrier_init(&pair[0], NULL, 2));
    EXPECT(0, pthread_barrier_init(&pair[1], NULL, 2));
    run_threads(4, work);
    EXPECT(1, serial[0] + serial[1] + serial[2] + serial[3]);
    EXPECT(1, initialised);
    EXPECT(1, initialised_second);
    EXPECT(0, pthread_barrier_destroy(&barrier));

    EXPECT(0, pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    EXPECT(0, pthread_spin_lock(&spin));
    run_threads(2, try_spin);
    EXPECT(0, pthread_spin_unlock(&spin));
    EXPECT(0, pthread_spin_trylock(&spin));
    EXPECT(0, pthread_spin_unlock(&spin));
    EXPECT(0, pthread_spin_destroy(&spin));
    return pass();
}
