/* main's own SIGSEGV handler, before and after there are threads, and its removal. */
#include "../harness.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf recover;
static volatile sig_atomic_t faults;

static void on_fault(int number)
{
    (void)number;
    faults++;
    siglongjmp(recover, 1);
}

static void fault(void)
{
    volatile int *volatile nowhere = NULL;
    if (sigsetjmp(recover, 1) == 0)
        *nowhere = 1;
}

static long busy(int self)
{
    long *block = calloc(10000, sizeof *block);
    for (int i = 0; i < 10000; i++)
        block[i] = i + self;
    long sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += block[i];
    free(block);
    EXPECT(10000 * 9999 / 2 + 10000 * self, sum);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    void (*before)(int) = signal(SIGSEGV, on_fault);
    REQUIRE(before == SIG_DFL);
    fault();
    EXPECT(1, faults);
    run_threads(threads, busy);
    fault();
    EXPECT(2, faults);
    REQUIRE(signal(SIGSEGV, SIG_DFL) == on_fault);
    run_threads(threads, busy);
    EXPECT(2, faults);
    return pass();
}
