/* A library that is opened to find its symbols in what it needs before those of the program: its memory and its threads are the program's. */
#include "../harness.h"
#include <dlfcn.h>

static void *(*get)(size_t);
static void (*release)(void *);
static int (*is_on_stack)(void);
static int **blocks;

static long work(int self)
{
    long violations = !is_on_stack();
    blocks[self] = get(100);
    *blocks[self] = self + 1;
    release(malloc(100));
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    void *library = dlopen("libdeep.so", RTLD_NOW | RTLD_DEEPBIND);
    if (!library)
        fail("%s", dlerror());
    *(void **)&get = dlsym(library, "deep_get");
    *(void **)&release = dlsym(library, "deep_free");
    *(void **)&is_on_stack = dlsym(library, "deep_on_stack");
    REQUIRE(get && release && is_on_stack && is_on_stack());
    blocks = get((size_t)threads * sizeof *blocks);
    long violations = run_threads(threads, work);
    for (int i = 0; i < threads; i++) {
        violations += *blocks[i] != i + 1;
        free(blocks[i]);
    }
    release(blocks);
    return verdict(violations, "a block or a stack was not the program's");
}
