/* The limit on open files as the program and what it runs see it; closing whatever is open. */
#include "../harness.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static struct rlimit limit;

/* What "ulimit -n" says in a program that a call has started. */
static void limit_of_children(void)
{
    char command[100], text[100] = "";
    int status = 0;
    snprintf(command, sizeof command, "test $(ulimit -S -n) = %ld", (long)limit.rlim_cur);
    EXPECT(0, system(command));
    FILE *child = popen("ulimit -S -n", "r");
    REQUIRE(child && fgets(text, sizeof text, child));
    EXPECT(limit.rlim_cur, atol(text));
    EXPECT(0, pclose(child));
    char *arguments[] = {"sh", "-c", command, NULL};
    pid_t spawned = 0;
    EXPECT(0, posix_spawn(&spawned, "/bin/sh", NULL, NULL, arguments, environ));
    EXPECT(spawned, waitpid(spawned, &status, 0));
    EXPECT(0, status);
    EXPECT(0, posix_spawnp(&spawned, "sh", NULL, NULL, arguments, environ));
    EXPECT(spawned, waitpid(spawned, &status, 0));
    EXPECT(0, status);
    EXPECT(ENOENT, posix_spawn(&spawned, "/nowhere", NULL, NULL, arguments, environ));
    /* Some shells become the last command, and then die of its signal. */
    status = system("exec 2> /dev/null; sh -c 'kill -KILL $$'");
    REQUIRE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 128 + SIGKILL);
    EXPECT(3, WEXITSTATUS(system("(exit 3)")));
    EXPECT(0, system("# a comment"));
    REQUIRE(system(NULL));
}

static void limit_of_this(void)
{
    struct rlimit now;
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &now));
    EXPECT(limit.rlim_cur, now.rlim_cur);
    EXPECT(0, prlimit(0, RLIMIT_NOFILE, NULL, &now));
    EXPECT(limit.rlim_cur, now.rlim_cur);
    EXPECT(limit.rlim_cur, sysconf(_SC_OPEN_MAX));
    EXPECT(limit.rlim_cur, getdtablesize());
}

static int opened[MAX_THREADS];
static pthread_barrier_t barrier;

static long work(int self)
{
    limit_of_this();
    limit_of_children();
    /* From here on nothing else is open: popen() has closed its pipes. */
    pthread_barrier_wait(&barrier);
    opened[self] = open("/dev/null", O_WRONLY);
    REQUIRE(opened[self] > 2);
    pthread_barrier_wait(&barrier);
    if (self == 0) {
        errno = 0;
        EXPECT(0, close_range(opened[threads - 1], opened[threads - 1], 0));
        EXPECT(0, errno);
    }
    pthread_barrier_wait(&barrier);
    if (self == threads - 1) {
        EXPECT(-1, write(opened[self], "x", 1));
        EXPECT(EBADF, errno);
    } else if (self == threads - 2) {
        EXPECT(1, write(opened[self], "x", 1));
    }
    pthread_barrier_wait(&barrier);
    if (self == 0)
        closefrom(3);
    pthread_barrier_wait(&barrier);
    EXPECT(-1, write(opened[self], "x", 1));
    EXPECT(-1, close(opened[self]));
    pthread_barrier_wait(&barrier);
    opened[self] = open("/dev/null", O_WRONLY);
    EXPECT(1, write(opened[self], "x", 1));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, threads));
    EXPECT(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit_of_this();
    limit_of_children();
    /* As programs do that want nothing from those that started them. */
    for (int fd = 3; fd < sysconf(_SC_OPEN_MAX); fd++)
        close(fd);
    EXPECT(0, close_range(3, ~0U, 0));
    EXPECT(-1, close_range(4, 3, 0));
    EXPECT(EINVAL, errno);
    pid_t child = fork();
    if (child == 0) {
        closefrom(3);
        limit_of_this();
        limit_of_children();
        _exit(0);
    }
    int status;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    int kept = open("/dev/null", O_WRONLY);
    EXPECT(3, kept);
    EXPECT(0, close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
    EXPECT(FD_CLOEXEC, fcntl(kept, F_GETFD));
    run_threads(threads, work);
    limit.rlim_cur = 100;
    EXPECT(0, setrlimit(RLIMIT_NOFILE, &limit));
    limit_of_this();
    limit_of_children();
    return pass();
}
