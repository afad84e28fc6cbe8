/* Child processes, and programs that threads of any node start, have the files that main has opened: at the same place, with the same flags. */
#include "../harness.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { BLOCK = 9 };
static int reads, appends, both, until_exec;

static int ended(pid_t child)
{
    int status = -1;
    EXPECT(child, waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int child(void)
{
    char text[BLOCK + 1] = "";
    if (read(reads, text, 5) != 5 || strcmp(text, "45678"))
        return 1;
    if (write(reads, "x", 1) != -1 || errno != EBADF)
        return 2;
    if (write(appends, "more\n", 5) != 5 || lseek(appends, 0, SEEK_CUR) % 5 != 0)
        return 3;
    if (pwrite(both, "child", 5, 100) != 5 || pread(both, text, 5, 100) != 5 || strncmp(text, "child", 5))
        return 4;
    if (fcntl(until_exec, F_GETFD) != FD_CLOEXEC || fcntl(reads, F_GETFD) != 0)
        return 5;
    if ((fcntl(appends, F_GETFL) & (O_APPEND | O_ACCMODE)) != (O_APPEND | O_WRONLY))
        return 6;
    int copy = dup(reads);
    if (copy < 0 || lseek(copy, 0, SEEK_CUR) != BLOCK || close(reads) || lseek(reads, 0, SEEK_CUR) != -1)
        return 7;
    return close(copy) || close(appends) || close(both) || close(until_exec) ? 8 : 0;
}

static long forks(void)
{
    EXPECT(4, lseek(reads, 4, SEEK_SET));
    pid_t id = fork();
    if (id == 0)
        _exit(child());
    EXPECT(0, ended(id));
    return 0;
}

static long runs(void)
{
    char command[200], text[BLOCK + 1] = "";
    /* Only the first ten can be named so. */
    REQUIRE(reads < 10 && until_exec < 10);
    EXPECT(6, lseek(reads, 6, SEEK_SET));
    snprintf(command, sizeof command, "test \"$(cat <&%d)\" = 678", reads);
    EXPECT(0, system(command));
    EXPECT(2, lseek(reads, 2, SEEK_SET));
    snprintf(command, sizeof command, "cat <&%d", reads);
    FILE *output = popen(command, "r");
    REQUIRE(output && fgets(text, sizeof text, output));
    EXPECT(0, strcmp(text, "2345678"));
    EXPECT(0, pclose(output));
    snprintf(command, sizeof command, "test ! -e /proc/self/fd/%d", until_exec);
    EXPECT(0, system(command));
    return 0;
}

static long spawns(void)
{
    pid_t id;
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"grep", "-q", "^345678$", NULL};
    EXPECT(3, lseek(reads, 3, SEEK_SET));
    EXPECT(0, posix_spawn_file_actions_init(&actions));
    EXPECT(0, posix_spawn_file_actions_adddup2(&actions, reads, STDIN_FILENO));
    EXPECT(0, posix_spawnp(&id, "grep", &actions, NULL, arguments, environ));
    EXPECT(0, posix_spawn_file_actions_destroy(&actions));
    EXPECT(0, ended(id));
    return 0;
}

int main(int argc, char **argv)
{
    struct stat status;
    char path[] = "/tmp/children_files.XXXXXX";
    parse(argc, argv, 3, 1);
    int made = mkstemp(path);
    EXPECT(BLOCK, write(made, "012345678", BLOCK));
    reads = open(path, O_RDONLY);
    until_exec = open(path, O_RDONLY | O_CLOEXEC);
    char other[] = "/tmp/children_files.XXXXXX";
    int empty = mkstemp(other);
    appends = open(other, O_WRONLY | O_APPEND);
    char third[] = "/tmp/children_files.XXXXXX";
    both = mkstemp(third);
    REQUIRE(made > 2 && reads > 2 && until_exec > 2 && empty > 2 && appends > 2 && both > 2);
    for (int i = 0; i < threads; i++) {
        in_new_thread(forks);
        in_new_thread(runs);
        in_new_thread(spawns);
    }
    EXPECT(0, fstat(empty, &status));
    EXPECT(5 * threads, status.st_size);
    EXPECT(0, unlink(path) | unlink(other) | unlink(third));
    return pass();
}
