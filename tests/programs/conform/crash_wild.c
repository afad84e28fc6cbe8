/* A wild pointer in a thread: the program dies of SIGSEGV. */
#include "../harness.h"

static char *volatile wild = (char *)0x123450;

static long work(int self)
{
    if (self == threads - 1)
        *wild = 1;
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    printf("about to crash\n");
    fflush(stdout);
    run_threads(threads, work);
    fail("a store to address 0x123450 was accepted");
}
