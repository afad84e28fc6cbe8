/* A thread aborts. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *unused)
{
    abort();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
