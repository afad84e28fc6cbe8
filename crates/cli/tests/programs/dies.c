/* A thread kills the process of its node, which is not the program's, as the first thing that happens. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void *die(void *unused)
{
    char name[32] = "";
    if (readlink("/proc/self", name, sizeof name - 1) > 0)
        kill(atoi(name), SIGKILL);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, die, NULL);
    pthread_join(thread, NULL);
    return 0;
}
