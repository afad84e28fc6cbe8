/* Store buffering with a barrier that one side makes for both: the other side's store waits behind many that miss the caches. */
#include "../harness.h"
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64, LINES = 1 << 19, BEFORE = 48 };

static _Alignas(LINE) volatile int x;
static _Alignas(LINE) volatile int y;
static _Alignas(LINE) volatile int read_x, read_y;
static pthread_barrier_t barrier;
static char *cold;

static void reader(unsigned *random)
{
    for (int i = 0; i < BEFORE; i++) {
        *random = *random * 1664525 + 1013904223;
        ((volatile char *)cold)[(size_t)(*random % LINES) * LINE] = 1;
    }
    x = 1;
    __asm__ volatile("" ::: "memory");
    read_y = y;
}

static int make_barrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

static long work(int self)
{
    long violations = 0;
    unsigned random = 1;
    for (int round = 0; round < iterations; round++) {
        if (self == 0)
            x = y = 0;
        pthread_barrier_wait(&barrier);
        if (self == 0) {
            y = 1;
            EXPECT(0, make_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
            read_x = x;
        } else {
            reader(&random);
        }
        pthread_barrier_wait(&barrier);
        violations += self == 0 && read_x == 0 && read_y == 0;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 2000);
    REQUIRE(threads == 2);
    cold = malloc((size_t)LINES * LINE);
    REQUIRE(cold && make_barrier(MEMBARRIER_CMD_QUERY) > 0);
    /* Makes the program one that needs sequential consistency. */
    __atomic_fetch_add(&x, 1, __ATOMIC_SEQ_CST);
    REQUIRE(make_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0);
    pthread_barrier_init(&barrier, NULL, 2);
    return verdict(run_threads(threads, work), "both sides missed what the other one wrote");
}
