/* Allocates by all functions there are, from several threads, while it forks: blocks keep what they hold, have the
 * alignment that was asked for, and are zeroed where they must be. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 5000
#define BLOCKS 200
#define ALIGNMENT 256

struct block {
    unsigned char *start;
    size_t length;
};

static void fail(const char *what)
{
    printf("%s\n", what);
    abort();
}

static void check(const struct block *block, unsigned char mark)
{
    for (size_t i = 0; i < block->length; i += 61)
        if (block->start[i] != mark)
            fail("a block has lost what it held");
}

static void *work(void *number)
{
    unsigned seed = (unsigned)(long)number;
    struct block blocks[BLOCKS] = {{0}};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char mark = rand_r(&seed) % BLOCKS;
        struct block *block = &blocks[mark];
        size_t most = rand_r(&seed) % 20 == 0 ? 300000 : 3000;
        size_t length = rand_r(&seed) % most + 1;
        int how = rand_r(&seed) % 5;
        check(block, mark);
        if (how == 0) {
            block->start = realloc(block->start, length);
            struct block kept = {block->start, length < block->length ? length : block->length};
            check(&kept, mark);
        } else {
            free(block->start);
            if (how == 1) {
                block->start = calloc(1, length);
                for (size_t i = 0; i < length; i++)
                    if (block->start[i] != 0)
                        fail("calloc gives what is not zero");
            } else if (how == 2) {
                if (posix_memalign((void **)&block->start, ALIGNMENT, length) != 0)
                    fail("posix_memalign");
                if ((unsigned long)block->start % ALIGNMENT != 0)
                    fail("a block is not aligned");
            } else {
                block->start = malloc(length);
            }
        }
        if (malloc_usable_size(block->start) < length)
            fail("a block is too short");
        block->length = length;
        memset(block->start, mark, length);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i].start);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            fail("pthread_create");
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(10));
            free(malloc(100000));
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("a child cannot allocate");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("as it should be");
    return 0;
}
