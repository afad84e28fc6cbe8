/* An executable whose malloc and free count, and call the next ones, which they look up by dlsym when they are first called: at the very start, and by
 * the loader itself where it frees its sentence about a name that it has not found. */
#include "../harness.h"
#include <dlfcn.h>

#define APART __attribute__((noipa))

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);

APART void *malloc(size_t size)
{
    if (!next_malloc)
        next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    return next_malloc(size);
}

APART void free(void *block)
{
    if (!next_free)
        next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next_free(block);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *texts[MAX_THREADS];

static long use(int me)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        free(texts[(me + i) % threads]);
        texts[(me + i) % threads] = strdup("a text of some bytes");
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    run_threads(threads, use);
    for (int i = 0; i < threads; i++)
        printf("%s\n", texts[i]);
    return pass();
}
