/* An allocator as mimalloc and tcmalloc are: it takes the names of the C library's, the inner ones too, and those of mappings, and keeps
 * its state in data of its own. Blocks are never used again. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

static char *next, *end;
static int mappings = 1;
static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER, mappings_mutex = PTHREAD_MUTEX_INITIALIZER;

static void count_mapping(int more)
{
    pthread_mutex_lock(&mappings_mutex);
    mappings += more;
    pthread_mutex_unlock(&mappings_mutex);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    count_mapping(1);
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
    count_mapping(-1);
    return (int)syscall(SYS_munmap, address, length);
}

void *memalign(size_t alignment, size_t size)
{
    size_t all = size + alignment + 16;
    pthread_mutex_lock(&blocks_mutex);
    if ((size_t)(end - next) < all) {
        size_t chunk = all > CHUNK ? all : CHUNK;
        next = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + chunk;
    }
    char *block = (char *)(((uintptr_t)next + 16 + alignment - 1) / alignment * alignment);
    next = block + size;
    pthread_mutex_unlock(&blocks_mutex);
    memcpy(block - sizeof size, &size, sizeof size);
    return block;
}

void *malloc(size_t size)
{
    return memalign(16, size);
}

void *calloc(size_t count, size_t size)
{
    /* Fresh from the kernel. */
    return malloc(count * size);
}

void free(void *block)
{
    (void)block;
}

void *realloc(void *block, size_t size)
{
    void *grown = malloc(size);
    size_t before = 0;
    if (block)
        memcpy(&before, (char *)block - sizeof before, sizeof before);
    return memcpy(grown, block, before < size ? before : size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = memalign(alignment, size);
    return 0;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

void *__libc_malloc(size_t size)
{
    return malloc(size);
}

void *__libc_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *__libc_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

void __libc_free(void *block)
{
    free(block);
}

void *__libc_memalign(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}
