/* Code that the program writes to memory runs on all nodes: in mappings that were executable from the start, in those that became so, and after it was changed. */
#include "../harness.h"
#include <sys/mman.h>

enum { PAGES = 4, SIZE = PAGES * 4096 };

static pthread_barrier_t barrier;
static unsigned char *code[3];

/* Writes a function that gives a number. */
static void write_code(unsigned char *at, int number)
{
    at[0] = 0xb8; /* mov eax, number */
    memcpy(at + 1, &number, sizeof number);
    at[5] = 0xc3; /* ret */
}

static int call(const unsigned char *at)
{
    int (*function)(void) = (int (*)(void))(uintptr_t)at;
    return function();
}

static long work(int self)
{
    long violations = 0;
    for (int round = 0; round < iterations; round++) {
        if (round % threads == self) {
            violations += mprotect(code[1], SIZE, PROT_READ | PROT_WRITE) != 0;
            for (int page = 0; page < PAGES; page++)
                for (int i = 0; i < 3; i++)
                    write_code(code[i] + page * 4096, 100 * round + 10 * i + page);
            violations += mprotect(code[1], SIZE, PROT_READ | PROT_EXEC) != 0;
        }
        pthread_barrier_wait(&barrier);
        for (int page = 0; page < PAGES; page++)
            for (int i = 0; i < 3; i++)
                violations += call(code[i] + page * 4096) != 100 * round + 10 * i + page;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

static unsigned char *map(unsigned char *at, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
    unsigned char *address = mmap(at, SIZE, protection, flags, -1, 0);
    REQUIRE(address != MAP_FAILED && (!at || address == at));
    return address;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    code[0] = map(NULL, PROT_READ | PROT_WRITE | PROT_EXEC);
    code[1] = map(NULL, PROT_READ | PROT_WRITE);
    code[2] = map(map(NULL, PROT_NONE), PROT_READ | PROT_WRITE | PROT_EXEC);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);
    for (int i = 0; i < 3; i++)
        EXPECT(0, munmap(code[i], SIZE));
    return verdict(violations, "code was not what a thread had written last");
}
