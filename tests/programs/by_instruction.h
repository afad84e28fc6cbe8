/* System calls by the instruction itself. */
#include <errno.h>
#include <sys/syscall.h>

/* What the kernel answers: a result, or an error number below zero. */
static inline long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* As `syscall`, with arguments that are left out as zero. */
static inline long by_instruction(long number, long a, long b, long c, long d, long e, long f)
{
    long result = kernel_call(number, a, b, c, d, e, f);
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

#define CALL_7(number, a, b, c, d, e, f, ...) \
    by_instruction(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL_7(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
