/* A thread protects a part of its stack, as virtual machines do, and leaves it so. What the memory is used for then is not protected. */
#include "../harness.h"
#include <sys/mman.h>

/* Larger than what the C library keeps for the next thread. */
enum { STACK = 64 << 20, BLOCK = 4 << 20, BLOCKS = 64 };

static void *protect(void *unused)
{
    char here;
    uintptr_t page = ((uintptr_t)&here - STACK / 2) & ~(uintptr_t)(PAGE - 1);
    EXPECT(0, mprotect((void *)page, 4 * PAGE, PROT_NONE));
    return unused;
}

/* Takes memory and writes to all of it. */
static long fill(void)
{
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK);
        REQUIRE(blocks[i]);
        memset(blocks[i], i + 1, BLOCK);
    }
    long violations = 0;
    for (int i = 0; i < BLOCKS; i++) {
        violations += blocks[i][BLOCK - 1] != i + 1;
        free(blocks[i]);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 2);
    pthread_attr_t attributes;
    EXPECT(0, pthread_attr_init(&attributes));
    EXPECT(0, pthread_attr_setstacksize(&attributes, STACK));
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        for (int i = 0; i < threads; i++) {
            pthread_t id;
            EXPECT(0, pthread_create(&id, &attributes, protect, NULL));
            EXPECT(0, pthread_join(id, NULL));
        }
        violations += fill();
        for (int i = 0; i < threads; i++)
            violations += in_new_thread(fill);
    }
    return verdict(violations, "memory was not what was written");
}
