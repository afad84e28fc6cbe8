/* Anonymous memory mapped by the program, private and shared, is common to its threads; so is what a thread maps;
 * unmapping and mapping again gives zeroes. */
#include "../harness.h"
#include <sys/mman.h>

enum { LENGTH = 20 * PAGE };
static long *from_main, *from_thread[MAX_THREADS];
static pthread_barrier_t barrier;

static long *map(int flags)
{
    void *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return p;
}

static long work(int self)
{
    long violations = 0;
    int words = LENGTH / (int)sizeof(long);
    from_thread[self] = map(self % 2 ? MAP_SHARED : MAP_PRIVATE);
    for (int i = 0; i < words; i++) {
        violations += from_main[i] != i;
        from_thread[self][i] = self * 100000 + i;
    }
    pthread_barrier_wait(&barrier);
    int other = (self + 1) % threads;
    for (int i = 0; i < words; i++)
        violations += from_thread[other][i] != other * 100000 + i;
    pthread_barrier_wait(&barrier);
    EXPECT(0, munmap(from_thread[other], LENGTH)); /* mapped by another thread */
    pthread_barrier_wait(&barrier);
    long *fresh = map(MAP_PRIVATE);
    for (int i = 0; i < words; i++)
        violations += fresh[i] != 0;
    EXPECT(0, munmap(fresh, LENGTH));
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    from_main = map(MAP_PRIVATE | MAP_NORESERVE);
    for (int i = 0; i < LENGTH / (int)sizeof(long); i++)
        from_main[i] = i;
    long violations = run_threads(threads, work);
    EXPECT(0, munmap(from_main, LENGTH));
    return verdict(violations, "mapped memory was not common");
}
