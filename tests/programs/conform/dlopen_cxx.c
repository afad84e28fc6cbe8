/* A program in C opens libraries in C++, which bring the C++ library with them: for each other, and for threads of all nodes. What the
 * second one needs has come with the first, and can be opened by its name, too. */
#include "../harness.h"
#include <dlfcn.h>

enum { THREADS = 4 };

static const char *(*name)(void);
static pthread_barrier_t barrier;

static void *opened(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY);
    if (!handle)
        fail("%s", dlerror());
    return handle;
}

static long work(int self)
{
    (void)self;
    pthread_barrier_wait(&barrier);
    EXPECT(0, strcmp(name(), "the object is here"));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, THREADS));
    void *guarded = opened("$ORIGIN/../libraries/libguarded.so");
    EXPECT(1, guarded == opened("libguarded.so"));
    name = (const char *(*)(void))dlsym(guarded, "guarded_name");
    int (*made)(void) = (int (*)(void))dlsym(guarded, "guarded_made");
    run_threads(THREADS, work);
    EXPECT(1, made());
    int (*checked)(int) = (int (*)(int))dlsym(opened("libthrower.so"), "checked");
    EXPECT(4, checked(3));
    void *cxx = opened("libstdc++.so.6");
    EXPECT(1, cxx == opened("libstdc++.so.6") && dlsym(cxx, "_ZSt9terminatev") != NULL);
    return pass();
}
