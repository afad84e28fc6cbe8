/* A read through a null pointer in main after its threads have ended: the program dies of SIGSEGV. */
#include "../harness.h"

static int *volatile null;

static long work(int self)
{
    (void)self;
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    printf("about to crash\n");
    fflush(stdout);
    run_threads(threads, work);
    fail("address 0 holds %d", *null);
}
