/* A library with thread-local variables, which needs the C++ runtime as this program does not, is opened while threads run on all nodes. */
#include "../harness.h"
#include "../libraries/locals.h"
#include <dlfcn.h>
#include <link.h>

static pthread_barrier_t barrier;
static void *library;
static const struct locals *locals;
static int (*next_local)(void);
static int opener;
static int *places[MAX_THREADS];
static long later[MAX_THREADS];

/* The variables of a thread that has not used them. */
static long first_use(int self)
{
    long violations = 0;
    for (int i = 1; i <= 5; i++) {
        violations += locals->next() != 5 + i || locals->quick() != 11 + i || locals->pointed() != 7;
        violations += next_local() != i;
        violations += locals->sum(self % 100, i) != i * (i + 1) / 2;
        violations += locals->checked(10) != 11 || locals->checked(11) != -1;
    }
    violations += !locals->name("a name that is too long for its own string") || locals->name("another");
    /* The symbol of a thread-local variable means the thread's own. */
    violations += dlsym(library, "counter") != locals->address() || *locals->address() != 10;
    return violations;
}

static void *use_later(void *self)
{
    later[(intptr_t)self] = first_use((int)(intptr_t)self);
    return NULL;
}

static int is_library(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    *(int *)found += slash && strcmp(slash, "/liblocals.so") == 0;
    return 0;
}

static long work(int self)
{
    long violations = 0;
    pthread_barrier_wait(&barrier);
    if (self == opener) {
        library = dlopen("liblocals.so", RTLD_NOW);
        if (!library)
            fail("%s", dlerror());
        locals = dlsym(library, "locals");
        void *large = dlopen("libown_locals.so", RTLD_NOW);
        if (!large)
            fail("%s", dlerror());
        next_local = (int (*)(void))dlsym(large, "next_local");
    }
    pthread_barrier_wait(&barrier);
    violations += first_use(self);
    places[self] = locals->address();
    pthread_barrier_wait(&barrier);
    /* Others' variables can be read and written by their addresses. */
    int *next = places[(self + 1) % threads];
    violations += *next != 10;
    pthread_barrier_wait(&barrier);
    *next = 100 + self;
    pthread_barrier_wait(&barrier);
    violations += *locals->address() != 100 + (self + threads - 1) % threads;
    /* The loader knows the library everywhere. */
    int found = 0;
    dl_iterate_phdr(is_library, &found);
    Dl_info info;
    violations += found != 1 || !dladdr(locals, &info) || strcmp(strrchr(info.dli_fname, '/'), "/liblocals.so") != 0;
    violations += strcmp(info.dli_sname, "locals") != 0 || info.dli_saddr != locals;
    pthread_t thread;
    violations += pthread_create(&thread, NULL, use_later, (void *)(intptr_t)self) != 0;
    violations += pthread_join(thread, NULL) != 0;
    return violations + later[self];
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    opener = threads / 2;
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);
    /* One thread of the library's, and two for each of ours. */
    EXPECT(1 + 2 * threads, locals->made());
    EXPECT(1 + 2 * threads, locals->gone());
    violations += first_use(0);
    return verdict(violations, "a thread-local variable was not the thread's own");
}
