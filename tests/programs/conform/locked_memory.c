/* Memory that the program has locked (mlock, mlockall) is read and written by all threads, as other memory is. */
#include "../harness.h"
#include <sys/mman.h>

enum { PAGES = 4, WORDS = PAGES * PAGE / sizeof(long) };

static long *words;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        pthread_mutex_lock(&mutex);
        for (size_t i = (size_t)self; i < WORDS; i += 8)
            words[i] += round;
        pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < WORDS; i++)
            violations += words[i] != ((long)(i % 8) < threads ? round * (round + 1) / 2 : 0);
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 20);
    if (threads > 8)
        threads = 8;
    words = aligned_alloc(PAGE, PAGES * PAGE);
    memset(words, 0, PAGES * PAGE);
    /* Where a user may not lock so much, there is nothing to try. */
    if (mlock(words, PAGES * PAGE) != 0 && errno != ENOMEM && errno != EPERM)
        fail("mlock: %s", strerror(errno));
    EXPECT(-1, mlockall(0));
    EXPECT(-1, mlockall(8));
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0 && errno != ENOMEM && errno != EPERM)
        fail("mlockall: %s", strerror(errno));
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    return verdict(run_threads(threads, work), "a word of locked memory has another value");
}
