/* An executable with an allocator of its own, which is in use before main and knows the thread that it belongs to by the thread pointer, as
 * mimalloc does. Blocks of all threads are freed by others. */
#include "../harness.h"

#include <malloc.h>
#include <sys/mman.h>

/* Called as from another file. */
#define APART __attribute__((noipa))

enum { ARENA = 64 << 20, HEADER = 16, BLOCKS = 200 };

static char *arena;
static size_t used;
static const void *first_thread;
static pthread_spinlock_t lock;

/* Whoever allocates first runs main later. */
static bool is_first_thread(void)
{
    return first_thread == __builtin_thread_pointer();
}

static volatile bool main_runs;

APART void *memalign(size_t alignment, size_t size)
{
    if (!arena) {
        first_thread = __builtin_thread_pointer();
        pthread_spin_init(&lock, 0);
        arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena == MAP_FAILED)
            abort();
    }
    if (main_runs && !is_first_thread())
        abort();
    pthread_spin_lock(&lock);
    char *block = (char *)(((uintptr_t)arena + used + HEADER + alignment - 1) & -alignment);
    used = (size_t)(block - arena) + size;
    pthread_spin_unlock(&lock);
    if (used > ARENA)
        abort();
    ((size_t *)block)[-1] = size;
    return block;
}

APART void *malloc(size_t size)
{
    return memalign(16, size);
}

APART size_t malloc_usable_size(void *block)
{
    return block ? ((size_t *)block)[-1] : 0;
}

APART void free(void *block)
{
    if (block)
        ((volatile char *)block)[-HEADER] = 1;
}

APART void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    volatile char *bytes = block;
    for (size_t i = 0; i < count * size; i++)
        bytes[i] = 0;
    return block;
}

APART void *realloc(void *old, size_t size)
{
    void *block = malloc(size);
    size_t kept = malloc_usable_size(old);
    if (old)
        memcpy(block, old, kept < size ? kept : size);
    return block;
}

APART int posix_memalign(void **result, size_t alignment, size_t size)
{
    *result = memalign(alignment, size);
    return 0;
}

/* Natively it runs before main, in the thread that runs main. */
static char *early;

__attribute__((constructor)) static void uses_the_allocator(void)
{
    early = malloc(100);
    strcpy(early, "early");
}

static char *blocks[MAX_THREADS][BLOCKS];

static long allocates(int self)
{
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(10 + i * 37 % 3000);
        blocks[self][i] = i % 3 ? malloc(size) : calloc(1, size);
        REQUIRE(blocks[self][i] && malloc_usable_size(blocks[self][i]) >= size);
        memset(blocks[self][i], self + i, size);
    }
    return strcmp(early, "early");
}

static long frees(int self)
{
    int other = (self + 1) % threads;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(10 + i * 37 % 3000);
        for (size_t at = 0; at < size; at++)
            EXPECT((char)(other + i), blocks[other][i][at]);
        if (i % 2) {
            blocks[other][i] = realloc(blocks[other][i], size * 2);
            EXPECT((char)(other + i), blocks[other][i][size - 1]);
        }
        free(blocks[other][i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    main_runs = true;
    free(malloc(10));
    main_runs = false;
    void *aligned;
    REQUIRE(posix_memalign(&aligned, 4096, 10) == 0 && (uintptr_t)aligned % 4096 == 0);
    free(aligned);
    EXPECT(0, run_threads(threads, allocates));
    EXPECT(0, run_threads(threads, frees));
    free(early);
    return pass();
}
