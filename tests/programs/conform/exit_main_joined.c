/* main ends by pthread_exit: its handlers and the destructors of its values run, and another thread joins it. */
#include "../harness.h"

static pthread_key_t key;
static pthread_t main_thread;
static int cleaned, destroyed;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void clean(void *by)
{
    *(int *)by = 1;
}

static void destroy(void *value)
{
    REQUIRE(cleaned);
    destroyed = *(int *)value;
    pthread_mutex_unlock(&held);
}

static void *joins(void *unused)
{
    void *result = NULL;
    EXPECT(0, pthread_join(main_thread, &result));
    EXPECT(42, (long)(intptr_t)result);
    EXPECT(0, pthread_mutex_lock(&held));
    EXPECT(1, cleaned);
    EXPECT(7, destroyed);
    EXPECT(ESRCH, pthread_join(main_thread, NULL));
    pass();
    return unused;
}

int main(int argc, char **argv)
{
    static int seven = 7;
    pthread_t id;
    parse(argc, argv, 1, 1);
    main_thread = pthread_self();
    EXPECT(EDEADLK, pthread_join(main_thread, NULL));
    EXPECT(0, pthread_key_create(&key, destroy));
    EXPECT(0, pthread_setspecific(key, &seven));
    EXPECT(0, pthread_mutex_lock(&held));
    EXPECT(0, pthread_create(&id, NULL, joins, NULL));
    EXPECT(0, pthread_detach(id));
    pthread_cleanup_push(clean, &cleaned);
    pthread_exit((void *)42);
    pthread_cleanup_pop(0);
    return 1;
}
