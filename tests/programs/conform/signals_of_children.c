/* A child handles signals as its parent would, whichever thread has made it: those that it sends itself, those of its parent, and those of many
 * children of its own, which come while it makes more. */
#include "../harness.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, GRANDCHILDREN = 20 };

static volatile sig_atomic_t got;

static void note(int signal)
{
    got = signal;
}

static void await(int signal)
{
    for (int i = 0; got != signal; i++) {
        if (i == 10000)
            _exit(100 + signal);
        usleep(1000);
    }
    got = 0;
}

static int child(int told)
{
    raise(SIGUSR1);
    if (got != SIGUSR1)
        return 1;
    got = 0;
    if (write(told, "1", 1) != 1)
        return 2;
    await(SIGUSR2);
    for (int i = 0; i < GRANDCHILDREN; i++)
        if (fork() == 0)
            _exit(0);
    await(SIGCHLD);
    for (int i = 0; i < GRANDCHILDREN; i++)
        wait(NULL);
    return 0;
}

static long work(int self)
{
    (void)self;
    int told[2], status = -1;
    char byte;
    EXPECT(0, pipe(told));
    pid_t forked = fork();
    if (forked == 0)
        _exit(child(told[1]));
    EXPECT(1, read(told[0], &byte, 1));
    EXPECT(0, kill(forked, SIGUSR2));
    EXPECT((long)forked, (long)waitpid(forked, &status, 0));
    EXPECT(0, status);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    EXPECT(0, sigaction(SIGUSR1, &action, NULL));
    EXPECT(0, sigaction(SIGUSR2, &action, NULL));
    EXPECT(0, sigaction(SIGCHLD, &action, NULL));
    run_threads(THREADS, work);
    return pass();
}
