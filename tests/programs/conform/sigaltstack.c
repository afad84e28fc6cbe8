/* Threads that install an alternate signal stack of their own, in the heap, and catch a fault and a signal on it. */
#include "../harness.h"
#include <setjmp.h>
#include <signal.h>

enum { STACK = 65536 };
static __thread sigjmp_buf recover;
static __thread char *stack;
static __thread volatile int on_own_stack, signals;
static long *common;
static pthread_barrier_t barrier;

static void note(void)
{
    char local;
    on_own_stack += &local >= stack && &local < stack + STACK;
    signals++;
}

static void on_fault(int number)
{
    (void)number;
    note();
    siglongjmp(recover, 1);
}

static void on_usr1(int number)
{
    (void)number;
    note();
}

static long work(int self)
{
    volatile long violations = 0;
    stack = malloc(STACK);
    stack_t mine = {.ss_sp = stack, .ss_size = STACK}, found;
    EXPECT(0, sigaltstack(&mine, NULL));
    EXPECT(0, sigaltstack(NULL, &found));
    REQUIRE(found.ss_sp == stack && found.ss_size == STACK && found.ss_flags == 0);
    for (volatile int round = 1; round <= iterations; round++) {
        if (sigsetjmp(recover, 1) == 0)
            *(volatile int *)(uintptr_t)(8 * (self + 1)) = 1;
        EXPECT(0, raise(SIGUSR1));
        for (int i = self; i < 3000; i += threads)
            common[i] = round * i;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 3000; i++)
            violations = violations + (common[i] != round * i);
        pthread_barrier_wait(&barrier);
    }
    EXPECT(2 * iterations, signals);
    EXPECT(2 * iterations, on_own_stack);
    mine = (stack_t){.ss_flags = SS_DISABLE};
    EXPECT(0, sigaltstack(&mine, NULL));
    free(stack);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    struct sigaction usr1 = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    EXPECT(0, sigaction(SIGSEGV, &fault, NULL));
    EXPECT(0, sigaction(SIGUSR1, &usr1, NULL));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    common = malloc(3000 * sizeof *common);
    return verdict(run_threads(threads, work), "common memory was wrong between the signals");
}
