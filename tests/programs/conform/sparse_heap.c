/* A program that allocates -i GB (30 unless told) in one piece and touches 40 MB of it, from all threads. Natively
 * this works only where the computer has so much memory or overcommits without limit. */
#include "../harness.h"

enum { TOUCHED_PAGES = 10240 };
static size_t reserved;
static char *block;
static pthread_barrier_t barrier;

static char *page(long i)
{
    return block + reserved / TOUCHED_PAGES * (size_t)i;
}

static long work(int self)
{
    long violations = 0;
    for (long i = self; i < TOUCHED_PAGES; i += threads)
        for (int k = 0; k < 64; k++)
            page(i)[k] = (char)(i * 3 + k);
    pthread_barrier_wait(&barrier);
    for (long i = (self + 1) % threads; i < TOUCHED_PAGES; i += threads)
        for (int k = 0; k < 64; k++)
            violations += page(i)[k] != (char)(i * 3 + k);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 30);
    reserved = (size_t)iterations << 30;
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    block = malloc(reserved);
    REQUIRE(block);
    block[reserved - 1] = 5;
    EXPECT(5, block[reserved - 1]);
    long violations = run_threads(threads, work);
    free(block);
    return verdict(violations, "a sparse page was lost");
}
