/* _exit(6) from a thread other than main: no exit function runs, the status is 6. */
#include "../harness.h"
#include <unistd.h>

static void must_not_run(void)
{
    printf("an exit function ran\n");
    fflush(stdout);
}

static void *leaves(void *unused)
{
    (void)unused;
    _exit(6);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, atexit(must_not_run));
    EXPECT(0, at_quick_exit(must_not_run));
    printf("started\n");
    fflush(stdout);
    end_by_thread(leaves);
}
