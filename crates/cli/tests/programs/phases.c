/* A thread that locks a mutex a hundred times and sleeps for a second; once it has ended, main sleeps too. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    sleep(1);
    return unused;
}

int main(void)
{
    pthread_t worker;
    if (pthread_create(&worker, 0, work, 0) != 0 || pthread_join(worker, 0) != 0)
        return 1;
    sleep(1);
    return 0;
}
