/* A thread on another node than main forks. Its child uses a descriptor that main has opened, and a thread-local variable of main's. */
#include <errno.h>
#include <pthread.h>
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

int main(void)
{
    pthread_t thread;
    of_main = &local;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    return 0;
}
