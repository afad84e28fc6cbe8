/* A thread kills its process as the first thing that happens. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *die(void *unused)
{
    kill(getpid(), SIGKILL);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, die, NULL);
    pthread_join(thread, NULL);
    return 0;
}
