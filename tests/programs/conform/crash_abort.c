/* abort() in a thread: the program dies of SIGABRT. */
#include "../harness.h"

static long work(int self)
{
    if (self == threads - 1)
        abort();
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    printf("about to abort\n");
    fflush(stdout);
    run_threads(threads, work);
    fail("abort() came back");
}
