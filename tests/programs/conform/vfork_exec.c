/* A child by vfork, which changes its descriptors before it runs another program: the parent's stay as they are. The parent stands still
 * until then. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *output; /* in the heap */

static long check(int self)
{
    (void)self;
    return strcmp(output, "hello\n") != 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 5);
    output = malloc(100);
    for (long i = 0; i < iterations; i++) {
        int ends[2], errors[2], before[2];
        EXPECT(0, pipe2(ends, O_CLOEXEC));
        EXPECT(0, pipe2(before, O_CLOEXEC | O_NONBLOCK));
        EXPECT(0, pipe2(errors, O_CLOEXEC));
        pid_t child = vfork();
        if (child == 0) {
            close(ends[0]);
            close(errors[0]);
            if (dup2(ends[1], STDOUT_FILENO) < 0)
                _exit(1);
            close(ends[1]);
            usleep(1000); /* for a parent that does not wait */
            if (write(before[1], "x", 1) != 1)
                _exit(1);
            execl("/bin/echo", "echo", "hello", (char *)NULL);
            _exit(127);
        }
        REQUIRE(child > 0);
        EXPECT(1, read(before[0], output, 1));
        EXPECT(0, close(before[0]));
        EXPECT(0, close(before[1]));
        EXPECT(0, close(ends[1]));
        EXPECT(0, close(errors[1]));
        /* Both end: nobody has the other ends open any more. */
        EXPECT(0, read(errors[0], output, 1));
        long got = 0, more;
        while ((more = read(ends[0], output + got, 99 - got)) > 0)
            got += more;
        output[got] = '\0';
        int status = 0;
        EXPECT(child, waitpid(child, &status, 0));
        EXPECT(0, status);
        EXPECT(0, close(ends[0]));
        EXPECT(0, close(errors[0]));
    }
    return verdict(run_threads(threads, check), "the child's output was not seen");
}
