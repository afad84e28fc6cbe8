/* What programs that manage their memory themselves do with mappings: reserve addresses and commit parts of them,
 * discard contents, put a new mapping or a file in place of a part, resize and move. All threads see the same. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 16, LENGTH = PAGES * PAGE };
static char *area, *boxes[MAX_THREADS];
static pthread_barrier_t barrier;

static int other_than_zero(const char *start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (start[i])
            return 1;
    return 0;
}

/* Each thread commits and fills its own part of what main has reserved, and all read all of it. */
static long reserved(int self)
{
    long violations = 0;
    char *mine = area + self * LENGTH;
    EXPECT(0, mprotect(mine, LENGTH, PROT_READ | PROT_WRITE));
    memset(mine, self + 1, LENGTH);
    pthread_barrier_wait(&barrier);
    for (int other = 0; other < threads; other++)
        for (int page = 0; page < PAGES; page++)
            violations += area[other * LENGTH + page * PAGE + self] != other + 1;
    pthread_barrier_wait(&barrier);
    /* Discarded by another thread than the one that has written it; protected memory, too. */
    char *next = area + (self + 1) % threads * LENGTH;
    EXPECT(0, mprotect(next, PAGE, PROT_READ));
    EXPECT(0, madvise(next, LENGTH / 2, MADV_DONTNEED));
    pthread_barrier_wait(&barrier);
    violations += other_than_zero(mine, LENGTH / 2) + (mine[LENGTH / 2] != self + 1);
    EXPECT(0, mprotect(mine, PAGE, PROT_READ | PROT_WRITE));
    mine[0] = 1;
    pthread_barrier_wait(&barrier);
    void *fixed = mmap(next + LENGTH / 2, PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(fixed == next + LENGTH / 2);
    pthread_barrier_wait(&barrier);
    violations += other_than_zero(mine + LENGTH / 2, PAGE) + (mine[LENGTH / 2 + PAGE] != self + 1);
    return violations;
}

static long resized(int self)
{
    long violations = 0;
    for (int round = 0; round < iterations; round++) {
        char *box = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(box != MAP_FAILED);
        for (int page = 0; page < PAGES; page++)
            box[page * PAGE] = (char)(self + page + round);
        boxes[self] = mremap(box, LENGTH, 3 * LENGTH, MREMAP_MAYMOVE);
        REQUIRE(boxes[self] != MAP_FAILED);
        pthread_barrier_wait(&barrier);
        int other = (self + 1) % threads;
        for (int page = 0; page < PAGES; page++)
            violations += boxes[other][page * PAGE] != (char)(other + page + round);
        violations += other_than_zero(boxes[other] + LENGTH, 2 * LENGTH);
        pthread_barrier_wait(&barrier);
        EXPECT(0, mremap(boxes[self], 3 * LENGTH, PAGE, 0) != boxes[self]);
        violations += boxes[self][0] != (char)(self + round);
        EXPECT(0, munmap(boxes[self], PAGE));
    }
    return violations;
}

/* A private mapping of a file in place of reserved memory. */
static void file_in_place(const char *program)
{
    int fd = open(program, O_RDONLY);
    REQUIRE(fd >= 0);
    char *place = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(place != MAP_FAILED);
    REQUIRE(mmap(place + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == place + PAGE);
    REQUIRE(memcmp(place + PAGE, "\177ELF", 4) == 0);
    REQUIRE(mmap(place, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    EXPECT(EEXIST, errno);
    EXPECT(0, munmap(place, LENGTH));
    close(fd);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    size_t length = (size_t)threads * LENGTH;
    area = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(area != MAP_FAILED);
    long violations = run_threads(threads, reserved);
    EXPECT(0, munmap(area, length));
    violations += run_threads(threads, resized);
    file_in_place(argv[0]);
    /* What is left is free for anything. */
    char *block = malloc(4 * length);
    memset(block, 1, 4 * length);
    free(block);
    return verdict(violations, "a mapping was not as it should be");
}
