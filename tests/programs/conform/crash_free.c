/* A thread frees a pointer into the middle of a block: the program aborts. */
#include "../harness.h"

static char *volatile inside;

static long work(int self)
{
    if (self == threads - 1)
        free(inside);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 1);
    char *block = malloc(100);
    inside = block + 48;
    printf("about to crash\n");
    fflush(stdout);
    run_threads(threads, work);
    return 0;
}
