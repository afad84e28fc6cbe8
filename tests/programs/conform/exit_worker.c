/* exit(7) from a thread other than main: exit functions run, output is flushed, the status is 7. */
#include "../harness.h"

static void first(void)
{
    printf("exit function registered first\n");
}

static void second(void)
{
    printf("exit function registered second\n");
}

static void *leaves(void *unused)
{
    (void)unused;
    printf("leaving\n");
    exit(7);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, atexit(first));
    EXPECT(0, atexit(second));
    printf("started\n");
    end_by_thread(leaves);
}
