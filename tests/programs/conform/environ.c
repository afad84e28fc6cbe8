/* A program with a copy of `environ` of its own, which the C library reads too, early and on every node. */
#include "../harness.h"

extern char **environ;

static long look(int self)
{
    (void)self;
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "PATH=", 5) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(threads, run_threads(threads, look));
    return pass();
}
