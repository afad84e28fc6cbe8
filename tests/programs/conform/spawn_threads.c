/* Threads start programs by posix_spawn while others change what is on the same pages: arguments, environment, the lists
 * themselves. */
#include "../harness.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char texts[MAX_THREADS][64], results[MAX_THREADS][64];

static long starts(int self)
{
    long failed = 0;
    for (long i = 0; i < iterations; i++) {
        char *arguments[] = {"echo", texts[self], NULL};
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int ends[2], status = -1;
        pid_t child = 0;
        snprintf(texts[self], sizeof texts[self], "%d %ld", self, i);
        EXPECT(0, pipe(ends));
        EXPECT(0, posix_spawn_file_actions_init(&actions));
        EXPECT(0, posix_spawn_file_actions_adddup2(&actions, ends[1], 1));
        EXPECT(0, posix_spawnattr_init(&attributes));
        EXPECT(0, posix_spawnp(&child, "echo", &actions, &attributes, arguments, environ));
        close(ends[1]);
        memset(results[self], 0, sizeof results[self]);
        if (read(ends[0], results[self], sizeof results[self] - 1) < 0)
            failed++;
        results[self][strcspn(results[self], "\n")] = 0;
        close(ends[0]);
        EXPECT(child, waitpid(child, &status, 0));
        failed += status != 0 || strcmp(texts[self], results[self]) != 0;
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
    return failed;
}

int main(int argc, char **argv)
{
    pid_t child = 0;
    char *arguments[] = {"absent", NULL};
    parse(argc, argv, 4, 10);
    EXPECT(ENOENT, posix_spawnp(&child, "no-such-program-anywhere", NULL, NULL, arguments, environ));
    EXPECT(ENOENT, posix_spawnp(&child, "", NULL, NULL, arguments, environ));
    EXPECT(ENOENT, posix_spawn(&child, "echo", NULL, NULL, arguments, environ));
    EXPECT(EACCES, posix_spawn(&child, "/etc/passwd", NULL, NULL, arguments, environ));
    return verdict(run_threads(threads, starts), "a program did not get its arguments");
}
