/* Any thread may wait for a child that any other has started: by its number, for any, for those of a group, without waiting, and with
 * what it used; and a signal tells a thread of its end. */
#include "../harness.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

extern char **environ;

static pthread_barrier_t barrier;
static pid_t children[THREADS];

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

/* The file for which the children that end with this status wait. */
static const char *gate(int status)
{
    static __thread char path[64];
    snprintf(path, sizeof path, "/tmp/children_of_others.%d.%d", (int)getpid(), status);
    return path;
}

/* Starts a child that ends with this status, at once or when it is told to. */
static pid_t start(int status, bool at_once)
{
    const char *path = gate(status);
    pid_t child = fork();
    if (child == 0) {
        while (!at_once && access(path, F_OK) != 0)
            usleep(500);
        _exit(status);
    }
    EXPECT(1, child > 0);
    return child;
}

static void end(int status)
{
    close(open(gate(status), O_CREAT | O_WRONLY, 0600));
}

static long wait_for_others(int self)
{
    int next = (self + 1) % THREADS, status = -1;
    char command[32];

    /* Each waits for the next one's. */
    children[self] = start(10 + self, true);
    meet();
    EXPECT((long)children[next], (long)waitpid(children[next], &status, 0));
    EXPECT(10 + next, WEXITSTATUS(status));
    EXPECT(-1, (int)waitpid(children[next], &status, 0));
    EXPECT(ECHILD, errno);
    meet();

    /* A program that another thread has started. */
    snprintf(command, sizeof command, "exit %d", 20 + self);
    char *arguments[] = {"sh", "-c", command, NULL};
    EXPECT(0, posix_spawn(&children[self], "/bin/sh", NULL, NULL, arguments, environ));
    meet();
    struct rusage used = {.ru_maxrss = -1};
    EXPECT((long)children[next], (long)wait4(children[next], &status, 0, &used));
    EXPECT(20 + next, WEXITSTATUS(status));
    EXPECT(1, used.ru_maxrss > 0);
    meet();

    /* A child that has not ended yet. */
    children[self] = start(30 + self, false);
    meet();
    EXPECT(0, (int)waitpid(children[next], &status, WNOHANG));
    siginfo_t info = {.si_pid = 7};
    EXPECT(0, waitid(P_PID, (id_t)children[next], &info, WEXITED | WNOHANG));
    EXPECT(0, (int)info.si_pid);
    meet();
    end(30 + next);
    EXPECT(0, waitid(P_PID, (id_t)children[next], &info, WEXITED | WNOWAIT));
    EXPECT((long)children[next], (long)info.si_pid);
    EXPECT(30 + next, info.si_status);
    EXPECT((long)children[next], (long)waitpid(children[next], &status, 0));
    meet();

    /* One thread waits for all that come. */
    children[self] = start(40 + self, self % 2);
    meet();
    if (self == 1) {
        int sum = 0, ended = 0;
        end(40);
        end(42);
        for (pid_t child; (child = wait(&status)) > 0; ended++)
            sum += WEXITSTATUS(status);
        EXPECT(ECHILD, errno);
        EXPECT(THREADS, ended);
        EXPECT(40 * THREADS + 6, sum);
        EXPECT(-1, (int)waitpid(-1, &status, WNOHANG));
        EXPECT(ECHILD, errno);
    }
    meet();

    /* One that ends by a signal of another thread. */
    if (self == 2)
        children[0] = start(0, false);
    meet();
    if (self == 3) {
        EXPECT(0, kill(children[0], SIGKILL));
        EXPECT((long)children[0], (long)waitpid(children[0], &status, 0));
        EXPECT(1, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    meet();

    /* The signal of a child's end comes to whoever waits for it. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    struct timespec none = {0};
    while (sigtimedwait(&ends, NULL, &none) > 0)
        ;
    meet();
    for (int parent = 0; parent < THREADS; parent++) {
        if (self == parent)
            children[0] = start(50 + parent, false);
        meet();
        if (self == (parent + 1) % THREADS) {
            end(50 + parent);
            int signal;
            EXPECT(0, sigwait(&ends, &signal));
            EXPECT(SIGCHLD, signal);
            EXPECT((long)children[0], (long)waitpid(children[0], &status, 0));
        }
        meet();
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    EXPECT(0, pthread_sigmask(SIG_BLOCK, &ends, NULL));
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(THREADS, wait_for_others);
    for (int i = 0; i < 100; i++)
        unlink(gate(i));
    return pass();
}
