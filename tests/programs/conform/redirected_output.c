/* A thread puts a file in the place of standard output for a while. */
#include "../harness.h"
#include <fcntl.h>
#include <unistd.h>

static long redirect(int self)
{
    char name[] = "/tmp/redirected-XXXXXX", found[64] = "";
    int file = mkstemp(name), before = dup(STDOUT_FILENO);
    REQUIRE(file >= 0 && before >= 0 && unlink(name) == 0);
    printf("before, by thread %d\n", self);
    EXPECT(0, fflush(stdout));
    EXPECT(STDOUT_FILENO, dup2(file, STDOUT_FILENO));
    printf("by stdio, ");
    EXPECT(0, fflush(stdout));
    EXPECT(9, (int)write(STDOUT_FILENO, "by write\n", 9));
    EXPECT(STDOUT_FILENO, dup2(before, STDOUT_FILENO));
    EXPECT(19, (int)pread(file, found, sizeof found, 0));
    printf("meanwhile: %s", found);
    EXPECT(0, fflush(stdout));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    run_threads(1, redirect);
    return pass();
}
