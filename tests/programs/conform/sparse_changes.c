/* Large mappings and blocks of which little is used can be discarded, moved, enlarged and had again, with the contents
 * that they natively have, and without memory for what nobody has used. */
#include "../harness.h"
#include <sys/mman.h>

#define BYTES (512ul << 20)
#define STEP (BYTES / 16)

static char *memory;

/* Writes where the others do not, on a page of its own or at the end of theirs. */
static long marks(int self)
{
    for (size_t at = 0; at < BYTES; at += STEP)
        memory[at + (size_t)(self % 2) * 64 * PAGE + (size_t)self] = (char)(self + 1);
    return 0;
}

static long violations(const char *where, bool cleared)
{
    long found = 0;
    for (size_t at = 0; at < BYTES; at += STEP)
        for (int self = 0; self < threads; self++)
            found += where[at + (size_t)(self % 2) * 64 * PAGE + (size_t)self] != (cleared ? 0 : (char)(self + 1));
    return found;
}

static long sees_marks(int self)
{
    (void)self;
    return violations(memory, false);
}

static long sees_zeros(int self)
{
    (void)self;
    return violations(memory, true);
}

static void *map(void)
{
    void *address = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(address != MAP_FAILED);
    return address;
}

static long resident(void)
{
    long size, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * (PAGE / 1024);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    memory = map();
    run_threads(threads, marks);
    EXPECT(0, run_threads(threads, sees_marks));
    EXPECT(0, madvise(memory, BYTES, MADV_DONTNEED));
    EXPECT(0, run_threads(threads, sees_zeros));

    run_threads(threads, marks);
    memory = mremap(memory, BYTES, BYTES * 2, MREMAP_MAYMOVE);
    REQUIRE(memory != MAP_FAILED);
    EXPECT(0, run_threads(threads, sees_marks));
    EXPECT(0, violations(memory + BYTES, true));

    REQUIRE(mmap(memory, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
    EXPECT(0, run_threads(threads, sees_zeros));
    run_threads(threads, marks);
    EXPECT(0, munmap(memory, BYTES * 2));
    memory = map();
    EXPECT(0, run_threads(threads, sees_zeros));
    EXPECT(0, munmap(memory, BYTES));

    memory = calloc(1, BYTES);
    REQUIRE(memory);
    run_threads(threads, marks);
    memory = realloc(memory, BYTES * 2);
    REQUIRE(memory);
    EXPECT(0, run_threads(threads, sees_marks));
    free(memory);
    memory = calloc(1, BYTES);
    REQUIRE(memory);
    EXPECT(0, run_threads(threads, sees_zeros));
    free(memory);

    long kib = resident();
    if (kib > 128 * 1024)
        fail("%ld KiB are in use", kib);
    return pass();
}
