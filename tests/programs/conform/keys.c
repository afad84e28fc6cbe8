/* Thread-specific data: values for each thread, destructors, destructors that set values again, errors. */
#include "../harness.h"
#include <limits.h>

static pthread_key_t plain, counted, again;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long destroyed_sum;
static int rounds;

static void count(void *value)
{
    pthread_mutex_lock(&mutex);
    destroyed_sum += *(long *)value;
    pthread_mutex_unlock(&mutex);
    free(value);
}

/* Sets its key again for ever: the library must give up after PTHREAD_DESTRUCTOR_ITERATIONS rounds. */
static void set_again(void *value)
{
    pthread_mutex_lock(&mutex);
    rounds++;
    pthread_mutex_unlock(&mutex);
    pthread_setspecific(again, value);
}

static long work(int self)
{
    REQUIRE(pthread_getspecific(plain) == NULL);
    REQUIRE(pthread_getspecific(counted) == NULL);
    long *value = malloc(sizeof *value);
    *value = self + 1;
    EXPECT(0, pthread_setspecific(plain, (void *)(intptr_t)(self + 100)));
    EXPECT(0, pthread_setspecific(counted, value));
    if (self == 0)
        EXPECT(0, pthread_setspecific(again, &rounds));
    EXPECT(self + 100, (intptr_t)pthread_getspecific(plain));
    REQUIRE(pthread_getspecific(counted) == value);
    if (self % 2)
        pthread_exit(NULL); /* destructors run here, too */
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 6, 1);
    EXPECT(0, pthread_key_create(&plain, NULL));
    EXPECT(0, pthread_key_create(&counted, count));
    EXPECT(0, pthread_key_create(&again, set_again));
    EXPECT(0, pthread_setspecific(plain, &plain));
    run_threads(threads, work);
    REQUIRE(pthread_getspecific(plain) == &plain);
    EXPECT(threads * (threads + 1) / 2, destroyed_sum);
    EXPECT(PTHREAD_DESTRUCTOR_ITERATIONS, rounds);

    EXPECT(0, pthread_key_delete(plain));
    EXPECT(EINVAL, pthread_key_delete(plain));
    EXPECT(EINVAL, pthread_setspecific(plain, &plain));
    static pthread_key_t all[PTHREAD_KEYS_MAX];
    int made = 0, error = 0;
    while (made < PTHREAD_KEYS_MAX && (error = pthread_key_create(&all[made], NULL)) == 0)
        made++;
    EXPECT(EAGAIN, error);
    REQUIRE(made > PTHREAD_KEYS_MAX / 2);
    for (int i = 0; i < made; i++)
        EXPECT(0, pthread_key_delete(all[i]));
    return pass();
}
