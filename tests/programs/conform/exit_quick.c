/* quick_exit(5) from a thread other than main: the functions that main and the thread registered for it run in reverse order, those
   of atexit do not, and the status is 5. */
#include "../harness.h"

static void must_not_run(void)
{
    printf("a function of atexit ran\n");
    fflush(stdout);
}

static void by_main(void)
{
    printf("quick exit function of main\n");
    fflush(stdout);
}

static void by_thread(void)
{
    printf("quick exit function of a thread\n");
    fflush(stdout);
}

static void *leaves(void *unused)
{
    (void)unused;
    EXPECT(0, at_quick_exit(by_thread));
    quick_exit(5);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    EXPECT(0, atexit(must_not_run));
    EXPECT(0, at_quick_exit(by_main));
    end_by_thread(leaves);
}
