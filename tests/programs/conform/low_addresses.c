/* Mappings at addresses of 32 bits, and at addresses that the program wants, are everyone's. */
#include "../harness.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 300, COMMON = MAP_PRIVATE | MAP_ANONYMOUS };

static char *mapped[MAX_THREADS], *code;
static char *const wanted = (char *)0x50000000;

static char *map_low(void *hint, size_t bytes, int flags)
{
    return mmap(hint, bytes, PROT_READ | PROT_WRITE, COMMON | flags, -1, 0);
}

static long map_own(int self)
{
    mapped[self] = map_low(NULL, PAGES * PAGE, MAP_32BIT);
    REQUIRE((uintptr_t)mapped[self] + PAGES * PAGE <= 1UL << 31);
    for (int page = 0; page < PAGES; page++) {
        EXPECT(0, mapped[self][page * PAGE + self]);
        mapped[self][page * PAGE + self] = (char)(self + 1);
    }
    return 0;
}

/* Each looks at what its neighbour has mapped, and gives it back. */
static long unmap_next(int self)
{
    char *next = mapped[(self + 1) % threads];
    for (int page = 0; page < PAGES; page++)
        EXPECT((self + 1) % threads + 1, next[page * PAGE + (self + 1) % threads]);
    EXPECT(0, munmap(next, PAGES * PAGE));
    return 0;
}

static long map_where_wanted(void)
{
    REQUIRE(map_low(wanted, 4 * PAGE, MAP_32BIT | MAP_NORESERVE) == wanted);
    memset(wanted, 5, 4 * PAGE);
    REQUIRE(map_low(wanted + PAGE, PAGE, MAP_FIXED) == wanted + PAGE);
    char *other = map_low(wanted, PAGE, MAP_32BIT);
    REQUIRE(other != MAP_FAILED && other != wanted);
    EXPECT(0, munmap(other, PAGE));
    REQUIRE(map_low(wanted + PAGE, PAGE, MAP_FIXED_NOREPLACE) == MAP_FAILED);
    EXPECT(EEXIST, errno);
    return 0;
}

/* mov eax, 42; ret */
static long make_code(void)
{
    static const unsigned char bytes[] = {0xb8, 42, 0, 0, 0, 0xc3};
    code = map_low(NULL, PAGE, MAP_32BIT);
    REQUIRE(code != MAP_FAILED);
    memcpy(code, bytes, sizeof bytes);
    EXPECT(0, mprotect(code, PAGE, PROT_READ | PROT_EXEC));
    return 0;
}

static long run_code(void)
{
    return ((int (*)(void))code)();
}

/* A child has its own copy, and the addresses that are free. */
static long fork_child(void)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char *own = map_low(NULL, PAGE, MAP_32BIT);
        bool right = own != MAP_FAILED && *own == 0 && wanted[17] == 5;
        wanted[17] = 6;
        _exit(right && munmap(wanted, 4 * PAGE) == 0 ? 3 : 4);
    }
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    for (int round = 0; round < 3; round++) {
        EXPECT(0, run_threads(threads, map_own));
        EXPECT(0, run_threads(threads, unmap_next));
    }
    EXPECT(0, in_new_thread(map_where_wanted));
    for (int page = 0; page < 4; page++)
        EXPECT(page == 1 ? 0 : 5, wanted[page * PAGE + 17]);
    EXPECT(3, fork_child());
    EXPECT(5, wanted[17]);
    EXPECT(0, munmap(wanted + PAGE, PAGE));
    REQUIRE(map_low(wanted + PAGE, PAGE, MAP_FIXED_NOREPLACE) == wanted + PAGE);
    EXPECT(0, wanted[PAGE]);
    EXPECT(5, wanted[2 * PAGE]);
    REQUIRE(map_low(NULL, 1UL << 31, MAP_32BIT) == MAP_FAILED);
    EXPECT(ENOMEM, errno);
    EXPECT(0, in_new_thread(make_code));
    EXPECT(42, run_code());
    EXPECT(42, in_new_thread(run_code));
    return pass();
}
