/* Contexts of threads of all nodes share their pages, so that each switch finds them elsewhere. They have masks of signals, arguments of which some
 * are on the stack, ways of rounding, and others that follow them. */
#include "../harness.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <xmmintrin.h>

enum { THREADS = 4, SWITCHES = 2000, STACK = 1 << 16 };

static struct {
    ucontext_t own, fiber, last;
    long sum, steps;
} all[THREADS];

static int blocks(int signal)
{
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, signal);
}

static void body(int self, int a, int b, int c, int d, int e, int f, int g, int h)
{
    all[self].sum = a + 10 * b + 100 * c + 1000 * d + 10000L * e + 100000L * f + 1000000L * g + 10000000L * h;
    EXPECT(_MM_ROUND_UP, _MM_GET_ROUNDING_MODE());
    for (int i = 0; i < SWITCHES; i++) {
        EXPECT(1, blocks(SIGUSR2));
        all[self].steps++;
        EXPECT(0, swapcontext(&all[self].fiber, &all[self].own));
    }
}

static void at_the_end(int self)
{
    all[self].steps = -1;
    EXPECT(0, setcontext(&all[self].own));
}

static void make(ucontext_t *context, ucontext_t *next)
{
    EXPECT(0, getcontext(context));
    context->uc_stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    context->uc_stack.ss_size = STACK;
    context->uc_link = next;
}

static long work(int self)
{
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
    make(&all[self].fiber, &all[self].last);
    _MM_SET_ROUNDING_MODE(_MM_ROUND_NEAREST);
    sigaddset(&all[self].fiber.uc_sigmask, SIGUSR2);
    /* A program that blocks faults must not lose its memory. */
    sigaddset(&all[self].fiber.uc_sigmask, SIGSEGV);
    makecontext(&all[self].fiber, (void (*)(void))body, 9, self, 1, 2, 3, 4, 5, 6, 7, 8);
    make(&all[self].last, NULL);
    makecontext(&all[self].last, (void (*)(void))at_the_end, 1, self);
    for (int i = 0; i < SWITCHES; i++) {
        EXPECT(0, swapcontext(&all[self].own, &all[self].fiber));
        EXPECT(i + 1, all[self].steps);
        EXPECT(_MM_ROUND_NEAREST, _MM_GET_ROUNDING_MODE());
        EXPECT(0, blocks(SIGUSR2));
    }
    EXPECT(87654321, all[self].sum);
    /* Its function returns, and the one behind it comes back here. */
    EXPECT(0, swapcontext(&all[self].own, &all[self].fiber));
    EXPECT(-1, all[self].steps);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    run_threads(THREADS, work);
    return pass();
}
