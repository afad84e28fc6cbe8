/* Code that the program writes to memory runs on all nodes: in mappings that were executable from the start, in those that became so, and after it was changed. */
#include "../harness.h"
#include <sys/mman.h>
#include <unistd.h>

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

static long call_it(int self)
{
    (void)self;
    return call(code[0]) != 7;
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

/* Two mappings of one file, to write code by one and execute it by the other. Generators of code take other memory where a system
   refuses that, as it is where nodes have no files in common. */
static void execute_by_a_file(void)
{
    int file = memfd_create("code", 0);
    REQUIRE(file >= 0 && ftruncate(file, SIZE) == 0);
    void *executed = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    if (executed == MAP_FAILED) {
        EXPECT(EPERM, errno);
    } else {
        unsigned char *written = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        REQUIRE(written != MAP_FAILED);
        write_code(written, 7);
        code[0] = executed;
        EXPECT(0, run_threads(threads, call_it));
        EXPECT(0, munmap(written, SIZE));
        EXPECT(0, munmap(executed, SIZE));
    }
    close(file);
}

static long call_it_beside_data(int self)
{
    code[0][-4096 + self] = 1;
    return call(code[0]) != 8;
}

/* A copy of a file with code, in memory that was reserved for code; other memory there is used meanwhile. */
static void execute_a_copy(void)
{
    enum { RESERVED = 8 << 20 };
    int file = memfd_create("code", 0);
    unsigned char page[4096] = {0};
    write_code(page, 8);
    REQUIRE(file >= 0 && write(file, page, sizeof page) == sizeof page);
    unsigned char *reserved = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(reserved != MAP_FAILED);
    code[0] = reserved + RESERVED / 2;
    REQUIRE(mmap(code[0], 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) == code[0]);
    EXPECT(0, mprotect(code[0] - 4096, 4096, PROT_READ | PROT_WRITE));
    EXPECT(0, run_threads(threads, call_it_beside_data));
    EXPECT(0, munmap(reserved, RESERVED));
    close(file);
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
    execute_by_a_file();
    execute_a_copy();
    return verdict(violations, "code was not what a thread had written last");
}
