/* System calls by the instruction itself, and places that only look like one. */
#include <pthread.h>
#include <sys/syscall.h>

static inline long call(long number, long argument)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");
    return result;
}

/* Called by nothing but a pointer. */
__attribute__((noinline, used)) static void *identify(void *argument)
{
    return (void *)(call(SYS_getpid, 0) + (long)argument);
}

/* Reached by a jump over others. */
__attribute__((noinline, used)) static long either(long which)
{
    if (which > 3)
        return call(SYS_getuid, which) + 1;
    return call(SYS_getgid, which);
}

void *(*volatile pointer)(void *) = identify;

/* Data among the code, with the bytes of the instruction between others that are instructions. */
__asm__(".text\n"
        "table: .fill 64, 1, 0x90\n\t .byte 0x0f, 0x05\n\t .fill 64, 1, 0x90\n");

/* A distance with these bytes. */
__asm__(".text\n"
        "far: .byte 0x8b, 0x05, 0x0f, 0x05, 0x00, 0x05\n\t ret\n");

int main(int argc, char **argv)
{
    return pointer(argv) == 0 && either(argc) == 0;
}
