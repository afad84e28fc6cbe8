/* Touches 100 of 256 pages, says where they are, and ends with its input. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    size_t page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 256 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    /* Kernels without huge pages refuse this. */
    madvise(memory, 256 * page, MADV_NOHUGEPAGE);
    memset(memory, 'x', 100 * page);
    printf("%zx+%zx\n", (size_t)memory, 256 * page);
    fflush(stdout);
    return getchar() != EOF;
}
