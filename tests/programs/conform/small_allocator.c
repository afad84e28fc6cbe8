/* An executable with no more of an allocator than the C library asks for, whose functions begin anywhere. Threads of all nodes use it, and free what the C
 * library has allocated by it. */
#include "../harness.h"
#include <sys/mman.h>

/* Called as from another file. */
#define APART __attribute__((noipa, aligned(1)))

enum { ARENA = 64 << 20, HEADER = 16 };

static char *arena;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

APART void *malloc(size_t size)
{
    pthread_mutex_lock(&lock);
    if (!arena)
        arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = arena + used + HEADER;
    used += (size + 2 * HEADER - 1) & -(size_t)HEADER;
    *(size_t *)(block - HEADER) = size;
    if (used > ARENA)
        abort();
    pthread_mutex_unlock(&lock);
    return block;
}

APART void free(void *block)
{
    if (block)
        memset((char *)block - HEADER, 0, sizeof(size_t));
}

APART void *calloc(size_t count, size_t size)
{
    return memset(malloc(count * size), 0, count * size);
}

APART void *realloc(void *block, size_t size)
{
    void *larger = malloc(size);
    if (block) {
        const size_t before = *(size_t *)((char *)block - HEADER);
        memcpy(larger, block, before < size ? before : size);
        free(block);
    }
    return larger;
}

static long sums[MAX_THREADS];

static long use(int me)
{
    char *text = NULL;
    for (int i = 0; i < 200; i++) {
        text = realloc(text, i + 1);
        text[i] = (char)((i + me) % 100);
        char *copy = strdup("copy");
        EXPECT(4, (int)strlen(copy));
        free(copy);
    }
    for (int i = 0; i < 200; i++)
        sums[me] += text[i];
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    run_threads(threads, use);
    for (int i = 0; i < threads; i++)
        printf("%ld\n", sums[i]);
    return pass();
}
