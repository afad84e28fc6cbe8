/* Threads: return values, joining in its variants, detaching, identity, attributes and their errors. */
#include "../harness.h"
#include "deadline.h"
#include <limits.h>
#include <semaphore.h>

static sem_t hold, done;
static pthread_t main_thread;

static void *returns_argument(void *argument)
{
    return argument;
}

static void exits_deeply(int depth, void *value)
{
    volatile char frame[100] = {0};
    if (depth > 0)
        exits_deeply(depth - 1 + frame[depth], value);
    else
        pthread_exit(value);
}

static void *exits(void *argument)
{
    exits_deeply(20, argument);
    return NULL;
}

static void *joins_itself(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)pthread_join(pthread_self(), NULL);
}

static void *waits(void *argument)
{
    sem_wait(&hold);
    return argument;
}

static void *tells_done(void *unused)
{
    (void)unused;
    REQUIRE(!pthread_equal(pthread_self(), main_thread));
    sem_post(&done);
    return NULL;
}

/* Uses some 500 kB of stack and asks where its stack is. */
static void *uses_stack(void *unused)
{
    (void)unused;
    volatile char big[500000];
    for (size_t i = 0; i < sizeof big; i += 1000)
        big[i] = (char)i;
    pthread_attr_t attr;
    void *low;
    size_t size;
    EXPECT(0, pthread_getattr_np(pthread_self(), &attr));
    EXPECT(0, pthread_attr_getstack(&attr, &low, &size));
    REQUIRE((char *)big >= (char *)low && (char *)big + sizeof big <= (char *)low + size);
    EXPECT(0, pthread_attr_destroy(&attr));
    return (void *)(intptr_t)big[1000];
}

static void joining(void)
{
    pthread_t id;
    void *result = NULL;
    EXPECT(0, pthread_create(&id, NULL, returns_argument, (void *)123));
    EXPECT(0, pthread_join(id, &result));
    EXPECT(123, (intptr_t)result);
    EXPECT(0, pthread_create(&id, NULL, exits, (void *)456));
    EXPECT(0, pthread_join(id, &result));
    EXPECT(456, (intptr_t)result);
    EXPECT(0, pthread_create(&id, NULL, joins_itself, NULL));
    EXPECT(0, pthread_join(id, &result));
    EXPECT(EDEADLK, (intptr_t)result);
    EXPECT(EDEADLK, pthread_join(pthread_self(), NULL));

    EXPECT(0, pthread_create(&id, NULL, waits, (void *)789));
    EXPECT(EBUSY, pthread_tryjoin_np(id, &result));
    struct timespec at = deadline(CLOCK_REALTIME, 30);
    EXPECT(ETIMEDOUT, pthread_timedjoin_np(id, &result, &at));
    sem_post(&hold);
    at = deadline(CLOCK_REALTIME, 60000);
    EXPECT(0, pthread_timedjoin_np(id, &result, &at));
    EXPECT(789, (intptr_t)result);
}

static void detaching(void)
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, waits, NULL));
    EXPECT(0, pthread_detach(id));
    EXPECT(EINVAL, pthread_detach(id));
    EXPECT(EINVAL, pthread_join(id, NULL));
    sem_post(&hold);

    pthread_attr_t attr;
    int state = -1;
    EXPECT(0, pthread_attr_init(&attr));
    EXPECT(0, pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    EXPECT(0, pthread_attr_getdetachstate(&attr, &state));
    EXPECT(PTHREAD_CREATE_DETACHED, state);
    EXPECT(EINVAL, pthread_attr_setdetachstate(&attr, 77));
    for (int i = 0; i < 5; i++)
        EXPECT(0, pthread_create(&id, &attr, tells_done, NULL));
    for (int i = 0; i < 5; i++)
        EXPECT(0, sem_wait(&done));
    EXPECT(0, pthread_attr_destroy(&attr));
}

static void attributes(void)
{
    pthread_attr_t attr;
    pthread_t id;
    size_t size = 0;
    void *result = NULL;
    EXPECT(0, pthread_attr_init(&attr));
    EXPECT(EINVAL, pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN - 1));
    EXPECT(0, pthread_attr_setstacksize(&attr, 1 << 20));
    EXPECT(0, pthread_attr_getstacksize(&attr, &size));
    EXPECT(1 << 20, size);
    EXPECT(0, pthread_create(&id, &attr, uses_stack, NULL));
    EXPECT(0, pthread_join(id, &result));
    EXPECT((char)1000, (intptr_t)result);
    EXPECT(0, pthread_attr_destroy(&attr));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    main_thread = pthread_self();
    REQUIRE(pthread_equal(main_thread, pthread_self()));
    EXPECT(0, sem_init(&hold, 0, 0));
    EXPECT(0, sem_init(&done, 0, 0));
    joining();
    detaching();
    attributes();
    return pass();
}
