/* The second node to start is held before it joins the others, until a file "go" appears. The choice of a function happens
   where constructors of nodes do not: while the loader links the program, so that nothing of the C library can be called. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

static long take(const char *name)
{
    return call(SYS_openat, AT_FDCWD, (long)name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
}

static int status(void)
{
    return 3;
}

static int (*choose(void))(void)
{
    struct timespec moment = {0, 1000000};
    long file = take("first");
    if (file < 0 && (file = take("second")) >= 0) {
        char digits[12];
        int begin = sizeof digits;
        digits[--begin] = '\n';
        for (long pid = call(SYS_getpid, 0, 0, 0, 0); pid > 0; pid /= 10)
            digits[--begin] = '0' + pid % 10;
        call(SYS_write, file, (long)(digits + begin), sizeof digits - begin, 0);
        while (call(SYS_access, (long)"go", F_OK, 0, 0) != 0)
            call(SYS_nanosleep, (long)&moment, 0, 0, 0);
    }
    if (file >= 0)
        call(SYS_close, file, 0, 0, 0);
    return status;
}

int chosen(void) __attribute__((ifunc("choose")));

int main(void)
{
    return chosen();
}
