// Exceptions pass functions that the program has made, on all nodes: one thread registers the table of their frames, and another one
// takes that back.
#include "../harness.h"
#include <stdexcept>
#include <sys/mman.h>

extern "C" void __register_frame(const void *);
extern "C" void __deregister_frame(const void *);

struct bases { void *text, *data, *function; };
extern "C" const void *_Unwind_Find_FDE(const void *, bases *);

enum { FUNCTIONS = 3, SPACE = 64 };

static pthread_barrier_t barrier;
static unsigned char *memory;

// push rbp; mov rbp, rsp; call rdi; pop rbp; ret
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

// The return address is 8 below the frame's, which is 8 above rsp at first.
static const unsigned char common[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0};

// After one byte it is 16 above and rbp is there, after three more it is 16 above rbp, and at the last byte it is as in the beginning.
static const unsigned char steps[] = {0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x43, 0x0c, 7, 8, 0, 0};

static void write_functions()
{
    unsigned char *table = memory + FUNCTIONS * SPACE, *at = table + sizeof common;
    memcpy(table, common, sizeof common);
    for (int i = 0; i < FUNCTIONS; i++) {
        unsigned char *function = memory + i * SPACE;
        memcpy(function, code, sizeof code);
        const uint32_t length = 4 + 8 + 8 + sizeof steps, back = (uint32_t)(at + 4 - table);
        const uint64_t range[] = {(uint64_t)(uintptr_t)function, sizeof code};
        memcpy(at, &length, 4);
        memcpy(at + 4, &back, 4);
        memcpy(at + 8, range, 16);
        memcpy(at + 24, steps, sizeof steps);
        at += 4 + length;
    }
    memset(at, 0, 4);
}

static int thrown;

static void throw_it()
{
    throw std::runtime_error("by function " + std::to_string(thrown));
}

static bool is_described(int function)
{
    bases found{};
    const void *entry = _Unwind_Find_FDE(memory + function * SPACE + 5, &found);
    return entry && found.function == memory + function * SPACE;
}

static long work(int self)
{
    long violations = 0;
    for (int round = 0; round < iterations; round++) {
        unsigned char *const table = memory + FUNCTIONS * SPACE;
        if (round % threads == self) {
            write_functions();
            thrown = round % FUNCTIONS;
            __register_frame(table);
        }
        pthread_barrier_wait(&barrier);
        try {
            void (*function)(void (*)()) = nullptr;
            const void *address = memory + round % FUNCTIONS * SPACE;
            memcpy(&function, &address, sizeof function);
            function(throw_it);
            violations++;
        } catch (const std::runtime_error &error) {
            violations += error.what() != "by function " + std::to_string(round % FUNCTIONS);
        }
        for (int i = 0; i < FUNCTIONS; i++)
            violations += !is_described(i);
        pthread_barrier_wait(&barrier);
        if ((round + 1) % threads == self)
            __deregister_frame(table);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < FUNCTIONS; i++)
            violations += is_described(i);
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 60);
    pthread_barrier_init(&barrier, nullptr, (unsigned)threads);
    memory = static_cast<unsigned char *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory != MAP_FAILED);
    EXPECT(0, run_threads(threads, work));
    return pass();
}
