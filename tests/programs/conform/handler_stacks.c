/* Handlers without a stack of their own run on that of the interrupted function, which has the registers of that function
   between: a collector of garbage that stops threads by signals looks for references there. */
#include "../harness.h"
#include <execinfo.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

enum { MARK = 0x5EED0000, NEAR = 64 << 10 };
static __thread volatile uintptr_t interrupted, sought;
static __thread volatile int near, found, walked, nested;
static __thread sigjmp_buf left;
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;
static sem_t looked;
static long *counts;

static bool is_in(uintptr_t from, uintptr_t number)
{
    for (volatile uintptr_t *word = (uintptr_t *)from; (uintptr_t)word < interrupted; word++)
        if (*word == number)
            return true;
    return false;
}

/* The handler, and what it is told of where the thread was, are below the function, in this order. */
static void look(const ucontext_t *context)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), told = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
    near += here < told && told < interrupted && interrupted - here < NEAR;
    found += is_in(here, sought) && !is_in(here, sought + 1);
}

static void on_usr1(int number, siginfo_t *info, void *context)
{
    REQUIRE(number == SIGUSR1 && info->si_signo == SIGUSR1 && context);
    /* The thread may not have begun to wait. */
    if (interrupted) {
        look(context);
        EXPECT(0, sem_post(&looked));
    }
}

static __attribute__((noinline)) void compute(void);

static void on_usr2(int number)
{
    void *stack[64];
    (void)number;
    int deep = backtrace(stack, 64);
    for (int i = 0; i < deep; i++)
        if ((char *)stack[i] > (char *)compute && (char *)stack[i] < (char *)compute + 400) {
            walked++;
            break;
        }
    nested++;
    EXPECT(0, raise(SIGUSR1));
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    /* Behind the instruction that has no meaning, with another number in the register. */
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    REQUIRE(registers[REG_R12] == MARK);
    registers[REG_R12] = MARK + 7;
    registers[REG_RIP] += 2;
}

static void on_leave(int number)
{
    (void)number;
    siglongjmp(left, 1);
}

/* The number that is looked for is in a register only. */
static __attribute__((noinline)) void compute(void)
{
    interrupted = (uintptr_t)__builtin_frame_address(0);
    register uintptr_t kept __asm__("r12") = MARK;
    double sum = 0.1;
    __asm__ volatile("" : "+r"(kept));
    for (int i = 1; i < 50; i++)
        sum = sum * 1.5 + i;
    EXPECT(0, raise(SIGUSR2));
    EXPECT(0, raise(SIGUSR1));
    double again = 0.1;
    for (int i = 1; i < 50; i++)
        again = again * 1.5 + i;
    REQUIRE(sum == again);
    __asm__ volatile("ud2" : "+r"(kept));
    REQUIRE(kept == MARK + 7);
}

static __attribute__((noinline)) void leave(int deep)
{
    volatile char room[512];
    room[0] = (char)deep;
    if (deep > 0)
        leave(deep - 1);
    else
        raise(SIGHUP);
    REQUIRE(room[0] == (char)deep);
}

/* Waits for the mutex while others interrupt it, and keeps the number in a register. */
static __attribute__((noinline)) void wait_with(uintptr_t number)
{
    interrupted = (uintptr_t)__builtin_frame_address(0);
    register uintptr_t kept __asm__("r12") = number;
    __asm__ volatile("" : "+r"(kept));
    EXPECT(0, pthread_mutex_lock(&common));
    EXPECT(0, pthread_mutex_unlock(&common));
    __asm__ volatile("" : "+r"(kept));
    REQUIRE(kept == number);
}

static void *wait_for_it(void *unused)
{
    (void)unused;
    sought = MARK + 3;
    pthread_barrier_wait(&begun);
    wait_with(MARK + 3);
    REQUIRE(near > 0);
    EXPECT(near, found);
    return NULL;
}

static long work(int self)
{
    for (int round = 1; round <= iterations; round++) {
        near = found = walked = nested = 0;
        sought = MARK;
        compute();
        EXPECT(2, near);
        EXPECT(2, found);
        EXPECT(1, walked);
        EXPECT(1, nested);
        counts[self] += round;
        for (volatile int deep = 0; deep < 40; deep++)
            if (sigsetjmp(left, 1) == 0)
                leave(deep);
    }
    return counts[self] == (long)iterations * (iterations + 1) / 2 ? 0 : 1;
}

static void handle(int number, void (*with)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = with, .sa_flags = SA_SIGINFO};
    EXPECT(0, sigaction(number, &action, NULL));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 10);
    handle(SIGUSR1, on_usr1);
    REQUIRE(signal(SIGUSR2, on_usr2) != SIG_ERR && signal(SIGHUP, on_leave) != SIG_ERR);
    handle(SIGILL, on_trap);
    EXPECT(0, pthread_barrier_init(&begun, NULL, 2));
    EXPECT(0, sem_init(&looked, 0, 0));
    counts = calloc((size_t)threads, 512 * sizeof *counts);
    long wrong = run_threads(threads, work);
    while (sem_trywait(&looked) == 0)
        ;
    /* Threads that wait for a mutex are on a stack of the runtime. */
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        EXPECT(0, pthread_mutex_lock(&common));
        EXPECT(0, pthread_create(&thread, NULL, wait_for_it, NULL));
        pthread_barrier_wait(&begun);
        for (int times = 0; times < 3; times++)
            do {
                EXPECT(0, pthread_kill(thread, SIGUSR1));
                sched_yield();
            } while (sem_trywait(&looked) != 0);
        EXPECT(0, pthread_mutex_unlock(&common));
        EXPECT(0, pthread_join(thread, NULL));
    }
    return verdict(wrong, "counts were wrong between the signals");
}
