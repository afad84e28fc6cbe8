/* "process-copy": 256 MiB from the memory of another process into fresh memory, 64 KiB at a time, each piece read as it
 * arrives. */
#include "measure.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t BYTES = 256u << 20, PIECE = 64 << 10;

static uint64_t *map(void)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory == MAP_FAILED, "mmap");
    return memory;
}

int main(void)
{
    size_t words = BYTES / sizeof(uint64_t);
    int ready[2];
    must(pipe(ready), "pipe");
    uint64_t *theirs = map(), *ours = map();
    pid_t child = fork();
    must(child < 0, "fork");
    if (child == 0) {
        for (size_t i = 0; i < words; i++)
            theirs[i] = i;
        must(write(ready[1], "", 1) != 1, "write");
        pause();
    }
    char byte;
    must(read(ready[0], &byte, 1) != 1, "read");
    struct samples times = new_samples("process-copy", 1);
    int64_t start = now();
    uint64_t sum = 0;
    for (size_t at = 0; at < words; at += PIECE / sizeof(uint64_t)) {
        struct iovec to = {ours + at, PIECE}, from = {theirs + at, PIECE};
        must(process_vm_readv(child, &to, 1, &from, 1, 0) != (ssize_t)PIECE, "process_vm_readv");
        for (size_t i = at; i < at + PIECE / sizeof(uint64_t); i++)
            sum += ours[i];
    }
    add_sample(&times, now() - start);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    must(sum != (uint64_t)words * (words - 1) / 2, "wrong data");
    print_samples(&times);
    return 0;
}
