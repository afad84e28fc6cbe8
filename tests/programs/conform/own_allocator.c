/* A library of the program's own defines malloc, the C library's inner names for it, and mmap, as mimalloc and tcmalloc do: threads of all
 * nodes still share what they allocate and map. */
#include "../harness.h"
#include <sys/mman.h>

enum { BLOCKS = 200 };
static char *blocks[64][BLOCKS];
static int *mapped;
static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            char *block = malloc(32 + (size_t)(i * 37 % 3000));
            sprintf(block, "%d-%d", self, i);
            blocks[self][i] = i % 2 ? realloc(block, 5000) : block;
        }
        mapped[self] = self + 1;
        pthread_barrier_wait(&barrier);
        int other = (self + 1) % threads;
        for (int i = 0; i < BLOCKS; i++) {
            char expected[32];
            sprintf(expected, "%d-%d", other, i);
            violations += strcmp(blocks[other][i], expected) != 0;
            free(blocks[other][i]);
        }
        violations += mapped[other] != other + 1;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    REQUIRE(threads <= 64);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);
    EXPECT(0, munmap(mapped, 4096));
    return verdict(violations, "threads do not share what they have allocated");
}
