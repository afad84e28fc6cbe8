/* A program's own SIGSEGV and SIGBUS handlers see its own faults and no others, and may leave by siglongjmp. */
#include "../harness.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static __thread sigjmp_buf recover;
static __thread volatile int caught;
static __thread void *volatile where;
static char *unreadable, *read_only;
static long *common;
static pthread_barrier_t barrier;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = number;
    where = info->si_addr;
    siglongjmp(recover, 1);
}

/* Touches `at` and gives the signal that this raised. */
static int touch(volatile char *at, bool write)
{
    caught = 0;
    where = NULL;
    if (sigsetjmp(recover, 1) == 0) {
        if (write)
            *at = 1;
        else
            (void)*at;
    }
    return caught;
}

static long work(int self)
{
    long violations = 0;
    FILE *empty = tmpfile();
    REQUIRE(empty);
    char *beyond_file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fileno(empty), 0);
    REQUIRE(beyond_file != MAP_FAILED);
    for (long round = 0; round < iterations; round++) {
        common[self] = round;
        volatile char *nowhere = (volatile char *)(uintptr_t)(16 + self);
        EXPECT(SIGSEGV, touch(nowhere, round % 2));
        REQUIRE(where == nowhere);
        EXPECT(SIGSEGV, touch(unreadable + 5, false));
        REQUIRE(where == unreadable + 5);
        EXPECT(SIGSEGV, touch(read_only + 6, true));
        REQUIRE(where == read_only + 6);
        EXPECT(0, touch(read_only + 6, false));
        EXPECT(SIGBUS, touch(beyond_file + 7, false));
        REQUIRE(where == beyond_file + 7);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < threads; i++)
            violations += common[i] != round;
        pthread_barrier_wait(&barrier);
    }
    EXPECT(0, munmap(beyond_file, PAGE));
    EXPECT(0, fclose(empty));
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    EXPECT(0, sigaction(SIGSEGV, &action, NULL));
    EXPECT(0, sigaction(SIGBUS, &action, NULL));
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    common = calloc(PAGE, 1);
    unreadable = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(unreadable != MAP_FAILED);
    read_only = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(read_only != MAP_FAILED);
    read_only[6] = 9;
    EXPECT(0, mprotect(read_only, PAGE, PROT_READ));
    return verdict(run_threads(threads, work), "common memory was wrong between the faults");
}
