/* The program break: memory that all threads move the end of, and that all of them use. */
#include "../harness.h"
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 3000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned char *pieces[MAX_THREADS * 100];
static char *beginning;

/* The next piece of memory, got in one of two ways. */
static void *more(int way)
{
    if (way % 2 == 0)
        return sbrk(PIECE);
    char *before = sbrk(0);
    return brk(before + PIECE) ? NULL : before;
}

static long work(int self)
{
    long violations = 0;
    for (int i = 0; i < iterations; i++) {
        pthread_mutex_lock(&mutex);
        unsigned char *piece = more(i);
        pthread_mutex_unlock(&mutex);
        for (int at = 0; at < PIECE; at++)
            violations += piece[at] != 0;
        memset(piece, self + 1, PIECE);
        pieces[self * iterations + i] = piece;
    }
    pthread_barrier_wait(&barrier);
    unsigned char *const *others = pieces + (self + 1) % threads * iterations;
    for (int i = 0; i < iterations; i++)
        for (int at = 0; at < PIECE; at++)
            violations += others[i][at] != (self + 1) % threads + 1;
    pthread_barrier_wait(&barrier);
    /* What is given up reads as zero when it comes back. */
    if (self == threads - 1) {
        char *end = sbrk(0);
        violations += end < beginning + threads * iterations * PIECE || sbrk(-2 * 4096) != end;
        violations += brk(end) != 0 || end[-4096] != 0 || end[-1] != 0;
        errno = 0;
        violations += sbrk((intptr_t)1 << 60) != (void *)-1 || errno != ENOMEM || brk((void *)4096) != 0;
        violations += sbrk(0) != end || syscall(SYS_brk, 0) != (long)end;
        pid_t child = fork();
        if (child == 0) {
            char *piece = sbrk(PIECE);
            int right = piece == end && *piece == 0 && *pieces[self * iterations] == self + 1;
            *piece = 1;
            _exit(right ? 7 : 1);
        }
        int status = 0;
        violations += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
        violations += sbrk(0) != end;
    }
    pthread_barrier_wait(&barrier);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    REQUIRE(iterations <= 100);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    beginning = sbrk(0);
    return verdict(run_threads(threads, work), "the program break was wrong");
}
