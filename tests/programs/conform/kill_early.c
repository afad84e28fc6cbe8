/* A thread can be sent signals as soon as pthread_create has returned; they wait until it looks for them. */
#include "../harness.h"
#include <signal.h>

static sigset_t user;

static void *waiter(void *unused)
{
    (void)unused;
    int signal = 0;
    EXPECT(0, sigwait(&user, &signal));
    return (void *)(intptr_t)signal;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 8, 25);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &user, NULL));
    for (long i = 0; i < iterations; i++) {
        pthread_t ids[MAX_THREADS];
        for (int t = 0; t < threads; t++) {
            EXPECT(0, pthread_create(&ids[t], NULL, waiter, NULL));
            EXPECT(0, pthread_kill(ids[t], SIGUSR1));
        }
        for (int t = 0; t < threads; t++) {
            void *got = NULL;
            EXPECT(0, pthread_join(ids[t], &got));
            EXPECT(SIGUSR1, (intptr_t)got);
        }
    }
    return pass();
}
