/* What the instruction for system calls keeps, and calls that change what a thread does: futexes, signals, forks, other stacks. */
#include "../harness.h"
#include "../by_instruction.h"
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Main and the threads use it by turns. */
static struct area {
    uint32_t word;
    int signals, number;
    int pipe[2];
    char text[8];
} *area;

/* All registers but two, the bytes below the stack pointer, the flags and errno stay as they are. */
__attribute__((noinline)) static long keep_registers(void)
{
    static const double in[2] = {1.25, -7.5};
    double out[2];
    unsigned long red, flags, held[4];
    long result;
    errno = 77;
    __asm__ volatile(
        "movq $0x1234, -8(%%rsp)\n\t"
        "movq $0x5678, -128(%%rsp)\n\t"
        "mov $11, %%r12\n\t mov $12, %%r13\n\t mov $13, %%rdx\n\t mov $14, %%r8\n\t"
        "mov %[number], %%eax\n\t"
        "cmp %%r12, %%r13\n\t"
        "stc\n\t"
        /* An instruction that uses memory is right before. */
        "movupd %[in], %%xmm9\n\t"
        "syscall\n\t"
        "setc %b[flags]\n\t"
        "movupd %%xmm9, %[out]\n\t"
        "mov %%r12, %[h0]\n\t mov %%r13, %[h1]\n\t mov %%rdx, %[h2]\n\t mov %%r8, %[h3]\n\t"
        "mov -8(%%rsp), %%rcx\n\t add -128(%%rsp), %%rcx\n\t"
        : "=a"(result), "=&c"(red), [flags] "=&b"(flags), [out] "=m"(out), [h0] "=m"(held[0]), [h1] "=m"(held[1]),
          [h2] "=m"(held[2]), [h3] "=m"(held[3])
        : [in] "m"(in), [number] "i"(SYS_getppid)
        : "rdx", "r8", "r11", "r12", "r13", "xmm9", "memory", "cc");
    EXPECT(getppid(), result);
    EXPECT(0x1234 + 0x5678, red);
    EXPECT(1, flags & 0xff);
    REQUIRE(out[0] == in[0] && out[1] == in[1]);
    REQUIRE(held[0] == 11 && held[1] == 12 && held[2] == 13 && held[3] == 14);
    EXPECT(-EBADF, kernel_call(SYS_close, -1, 0, 0, 0, 0, 0));
    EXPECT(77, errno);
    return 0;
}

/* Main waits for it by a futex. */
static void *wake_main(void *unused)
{
    __atomic_store_n(&area->word, 1, __ATOMIC_SEQ_CST);
    REQUIRE(CALL(SYS_futex, &area->word, FUTEX_WAKE, 1) >= 0);
    return unused;
}

/* An action as the kernel has it. */
struct action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* Where handlers return to. */
void restore(void);
__asm__("restore:\n\t mov $15, %eax\n\t syscall");

enum { HAS_RESTORER = 0x04000000 };

static void on_signal(int number)
{
    area->signals++;
    area->number = number;
}

/* Handlers and masks in the forms of the kernel; a signal that a thread sends itself. */
static long use_signals(void)
{
    struct action action = {on_signal, SA_RESTART | HAS_RESTORER, restore, 1ul << (SIGUSR2 - 1)}, before;
    EXPECT(0, CALL(SYS_rt_sigaction, SIGUSR1, &action, 0, 8));
    EXPECT(0, CALL(SYS_rt_sigaction, SIGUSR1, 0, &before, 8));
    REQUIRE(before.handler == on_signal && before.mask == action.mask && before.flags & SA_RESTART);
    unsigned long set = ~0ul, old = 1, pending = 0;
    EXPECT(0, CALL(SYS_rt_sigprocmask, SIG_BLOCK, &set, &old, 8));
    REQUIRE(!(old >> (SIGUSR1 - 1) & 1));
    long thread = CALL(SYS_gettid);
    EXPECT(gettid(), thread);
    EXPECT(0, CALL(SYS_tgkill, getpid(), thread, SIGUSR1));
    EXPECT(0, area->signals);
    EXPECT(0, CALL(SYS_rt_sigpending, &pending, 8));
    REQUIRE(pending >> (SIGUSR1 - 1) & 1);
    /* With all signals blocked, memory that other nodes have is still there. */
    area->number = 0;
    EXPECT(0, CALL(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, 8));
    EXPECT(1, area->signals);
    EXPECT(SIGUSR1, area->number);
    area->signals = 0;
    EXPECT(-1, CALL(SYS_rt_sigaction, SIGKILL, &action, 0, 8));
    EXPECT(EINVAL, errno);
    return 0;
}

/* Children, by each way to fork. */
static long fork_children(void)
{
    long numbers[] = {SYS_fork, SYS_vfork, SYS_clone};
    for (int way = 0; way < 3; way++) {
        area->number = way;
        long child = CALL(numbers[way], way == 2 ? SIGCHLD : 0);
        if (child == 0) {
            CALL(SYS_exit_group, 40 + area->number);
        }
        int status = 0;
        EXPECT(child, CALL(SYS_wait4, child, &status, 0, 0));
        EXPECT(40 + way, WEXITSTATUS(status));
    }
    return 0;
}

/* A child with the memory of its parent, which waits for it, and a stack of its own. */
static long clone_on_stack(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    long flags = CLONE_VM | CLONE_VFORK | SIGCHLD, result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "mov %[end], %%eax\n\t"
                     "mov $9, %%edi\n\t"
                     "syscall\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"(flags), "S"(stack + sizeof stack), [end] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    REQUIRE(result > 0);
    int status = 0;
    EXPECT(result, CALL(SYS_wait4, result, &status, 0, 0));
    EXPECT(9, WEXITSTATUS(status));
    return 0;
}

/* A library that is opened late writes to a pipe of main's. */
static long write_by_library(void)
{
    void *library = dlopen("libcalling.so", RTLD_NOW);
    REQUIRE(library);
    long (*call)(long, long, long, long) = (long (*)(long, long, long, long))dlsym(library, "call_in_library");
    EXPECT(5, call(SYS_write, area->pipe[1], (long)"piped", 5));
    EXPECT(-EBADF, call(SYS_write, area->pipe[1] + 100, (long)"piped", 5));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    area = calloc(1, sizeof *area);
    EXPECT(0, keep_registers());
    EXPECT(0, in_new_thread(keep_registers));

    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, wake_main, NULL));
    while (!__atomic_load_n(&area->word, __ATOMIC_SEQ_CST)) {
        long result = CALL(SYS_futex, &area->word, FUTEX_WAIT, 0, NULL);
        REQUIRE(result == 0 || errno == EAGAIN || errno == EINTR);
    }
    EXPECT(0, pthread_join(thread, NULL));

    EXPECT(0, in_new_thread(use_signals));
    EXPECT(0, use_signals());
    EXPECT(0, in_new_thread(fork_children));
    EXPECT(0, fork_children());
    EXPECT(0, pipe(area->pipe));
    EXPECT(0, in_new_thread(write_by_library));
    EXPECT(0, write_by_library());
    EXPECT(5, CALL(SYS_read, area->pipe[0], area->text, 5));
    EXPECT(0, memcmp(area->text, "piped", 5));
    EXPECT(0, clone_on_stack());
    EXPECT(0, in_new_thread(clone_on_stack));
    return pass();
}
