/* A child finds the actions that its parent has set for signals, as the program set them, and those of its own. A program begins without an error
 * number. */
#include "../harness.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int at_start = -1;

__attribute__((constructor)) static void begin(void)
{
    at_start = errno;
}

static void note(int signal)
{
    (void)signal;
}

static int child(void)
{
    struct sigaction found, ignored;
    memset(&ignored, 0, sizeof ignored);
    ignored.sa_handler = SIG_IGN;
    if (sigaction(SIGUSR1, NULL, &found) != 0 || found.sa_handler != note)
        return 1;
    if (!(found.sa_flags & SA_NOCLDSTOP) || found.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART))
        return 2;
    if (sigismember(&found.sa_mask, SIGUSR2) != 1 || sigismember(&found.sa_mask, SIGTERM) != 0)
        return 3;
    if (sigaction(SIGUSR1, &ignored, &found) != 0 || found.sa_handler != note)
        return 4;
    if (sigaction(SIGUSR1, NULL, &found) != 0 || found.sa_handler != SIG_IGN)
        return 5;
    if (sigaction(SIGABRT, NULL, &found) != 0 || found.sa_handler != SIG_DFL)
        return 6;
    return sigaction(SIGSEGV, NULL, &found) != 0 || found.sa_handler != SIG_DFL ? 7 : 0;
}

static long work(int self)
{
    (void)self;
    int status = -1;
    pid_t forked = fork();
    if (forked == 0)
        _exit(child());
    EXPECT((long)forked, (long)waitpid(forked, &status, 0));
    EXPECT(0, status);
    return 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct sigaction action;
    EXPECT(0, at_start);
    memset(&action, 0, sizeof action);
    action.sa_handler = note;
    action.sa_flags = SA_NOCLDSTOP;
    sigaddset(&action.sa_mask, SIGUSR2);
    EXPECT(0, sigaction(SIGUSR1, &action, NULL));
    run_threads(4, work);
    return pass();
}
