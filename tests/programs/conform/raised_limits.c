/* A program limits its addresses and goes on with threads, its children have the limit, and a higher limit on stacks makes that of main longer. */
#include "../harness.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEGABYTE = 1 << 20, DEPTH = 8000 /* of 4 KiB: more than the 8 MiB that there are at first */ };

static long recurse(long depth)
{
    volatile char frame[PAGE];
    frame[0] = frame[PAGE - 1] = (char)depth;
    return depth ? recurse(depth - 1) + 1 - (frame[0] != (char)depth) : 0;
}

static long use_memory(int self)
{
    char *block = malloc(20 * MEGABYTE);
    REQUIRE(block);
    memset(block, self, 20 * MEGABYTE);
    long wrong = block[19 * MEGABYTE] != self;
    free(block);
    return wrong;
}

static void limit(int resource, rlim_t most)
{
    struct rlimit wanted;
    EXPECT(0, getrlimit(resource, &wanted));
    wanted.rlim_cur = most;
    EXPECT(0, setrlimit(resource, &wanted));
    struct rlimit found;
    EXPECT(0, getrlimit(resource, &found));
    REQUIRE(found.rlim_cur == most);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    limit(RLIMIT_STACK, 64 * MEGABYTE);
    EXPECT(DEPTH, recurse(DEPTH));
    EXPECT(0, run_threads(threads, use_memory));
    limit(RLIMIT_AS, (rlim_t)2048 * MEGABYTE);
    limit(RLIMIT_DATA, (rlim_t)1024 * MEGABYTE);
    EXPECT(0, run_threads(threads, use_memory));
    pid_t child = fork();
    if (child == 0) {
        void *much = mmap(NULL, (size_t)4096 * MEGABYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _exit(much == MAP_FAILED && errno == ENOMEM ? 7 : 1);
    }
    int status;
    EXPECT((long)child, (long)waitpid(child, &status, 0));
    EXPECT(7, WEXITSTATUS(status));
    return pass();
}
