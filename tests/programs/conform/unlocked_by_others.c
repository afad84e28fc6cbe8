/* Mutexes of the normal kind and spin locks that other threads unlock than have locked them, as natively: a mutex in place of a semaphore. */
#include "../harness.h"
#include <unistd.h>

static pthread_mutex_t turn[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static long value, seen;
static int state;

/* The threads take turns: each unlocks what the other waits for. */
static void *alternate(void *argument)
{
    const long me = (long)argument;
    for (int i = 0; i < iterations; i++) {
        pthread_mutex_lock(&turn[me]);
        value = value * 31 % 100003 + me + i;
        EXPECT(0, pthread_mutex_unlock(&turn[1 - me]));
    }
    return NULL;
}

static void *unlock_spin(void *argument)
{
    value++;
    EXPECT(0, pthread_spin_unlock(&spin));
    return argument;
}

/* A thread may wait with a mutex of this kind that it has not locked. */
static void *wait_without_lock(void *argument)
{
    do {
        EXPECT(0, pthread_cond_wait(&changed, &guard));
    } while (!state);
    seen = value;
    EXPECT(0, pthread_mutex_unlock(&guard));
    return argument;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 200);
    pthread_t threads[2], other;
    pthread_mutex_lock(&turn[0]);
    pthread_mutex_lock(&turn[1]);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, alternate, (void *)i);
    EXPECT(0, pthread_mutex_unlock(&turn[0]));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", value);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 10; i++) {
        pthread_spin_lock(&spin);
        pthread_create(&other, NULL, unlock_spin, NULL);
        pthread_spin_lock(&spin);
        pthread_join(other, NULL);
        pthread_spin_unlock(&spin);
    }
    printf("%ld\n", value);
    pthread_create(&other, NULL, wait_without_lock, NULL);
    for (int ended = 0; !ended; usleep(1000)) {
        pthread_mutex_lock(&guard);
        state = 1;
        pthread_cond_signal(&changed);
        ended = seen != 0;
        pthread_mutex_unlock(&guard);
    }
    pthread_join(other, NULL);
    printf("%ld\n", seen);
    return pass();
}
