/* Constructors lock mutexes before main, one of which is still locked there. Prints ok. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t given_back = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

__attribute__((constructor)) static void lock_both(void)
{
    pthread_mutex_lock(&given_back);
    pthread_mutex_unlock(&given_back);
    pthread_mutex_lock(&kept);
}

static void *work(void *argument)
{
    first = pthread_mutex_trylock(&given_back);
    second = pthread_mutex_trylock(&kept);
    return argument;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        return 1;
    puts(first == 0 && second == EBUSY && pthread_mutex_unlock(&kept) == 0 ? "ok" : "wrong");
    return 0;
}
