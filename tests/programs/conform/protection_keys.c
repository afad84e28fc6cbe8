/* Protection keys: a program gets none, or one that works, and memory without a key is protected as by mprotect. */
#include "../harness.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static int key;
static volatile int *page;
static __thread sigjmp_buf back;

static void on_fault(int signal)
{
    siglongjmp(back, signal);
}

static bool can_write(int value)
{
    if (sigsetjmp(back, 1))
        return false;
    *page = value;
    return true;
}

static long work(int self)
{
    long violations = 0;
    if (key >= 0) {
        pkey_set(key, PKEY_DISABLE_WRITE);
        violations += can_write(1);
        pkey_set(key, 0);
    }
    return violations + !can_write(self + 1) + (*page != self + 1);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    signal(SIGSEGV, on_fault);
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED && !can_write(1));
    key = pkey_alloc(0, 0);
    REQUIRE(key >= 0 || errno == ENOSPC || errno == EINVAL || errno == ENOSYS);
    EXPECT(0, pkey_mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE, key));
    long violations = work(41) + run_threads(threads, work);
    EXPECT(0, pkey_mprotect((void *)page, PAGE, PROT_READ, -1));
    return verdict(violations + can_write(2), "memory is not protected as was said");
}
