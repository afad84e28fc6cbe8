/* A thread on another node than main forks. Its child uses a descriptor that main has opened, and a thread-local variable of main's. With
 * an argument, the thread has a child on a terminal of its own, and main goes on as a daemon. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pthread.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread long local = 42;
static long *of_main;
static int ends[2];

static void *work(void *unused)
{
    pid_t child = fork();
    if (child == 0) {
        const char *said = write(ends[1], "child", 5) == 5 ? "written\n" : strerror(errno);
        if (write(STDOUT_FILENO, said, strlen(said)) < 0)
            _exit(1);
        _exit(*of_main == 42 ? 0 : 2);
    }
    int status = 0;
    printf("%d", waitpid(child, &status, 0) == child);
    printf(" %d %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    return unused;
}

static long shared;

static void *on_terminal(void *unused)
{
    int terminal, status = 0;
    char said[20] = "";
    shared = 5;
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    if (child == 0)
        _exit(!isatty(STDIN_FILENO) || write(STDOUT_FILENO, "hello", shared) != 5);
    printf("%zd %s ", read(terminal, said, sizeof said - 1), said);
    printf("%d %d\n", waitpid(child, &status, 0) == child, status);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    of_main = &local;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, argc > 1 ? on_terminal : work, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    if (argc > 1) {
        fflush(stdout);
        pid_t before = getpid();
        int failed = daemon(1, 1);
        printf("%d %d %ld\n", failed, getpid() != before, shared);
    }
    return 0;
}
