/* Threads change how signals are handled while signals arrive, whose handlers do the same. */
#include "../harness.h"
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static pthread_t main_thread;

static void handler(int signal)
{
    struct sigaction old;
    sigaction(SIGUSR2, NULL, &old);
    sigaction(signal, NULL, &old);
    handled++;
}

static void install(int signal)
{
    struct sigaction action = {.sa_handler = handler};
    EXPECT(0, sigaction(signal, &action, NULL));
}

static long work(int self)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < iterations; i++) {
        pthread_kill(main_thread, SIGUSR1);
        if (self == 0)
            usleep(100);
    }
    return 0;
}

static void *noise(__attribute__((unused)) void *argument)
{
    run_threads(threads, work);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 200);
    main_thread = pthread_self();
    install(SIGUSR1);
    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, noise, NULL));
    int result;
    while ((result = pthread_tryjoin_np(thread, NULL)) == EBUSY)
        for (int i = 0; i < 100; i++)
            install(i % 2 ? SIGUSR2 : SIGHUP);
    EXPECT(0, result);
    REQUIRE(handled > 0);
    return pass();
}
