/* Functions of the C library that a program looks up there by their names, and that a library of its own looks up behind itself. */
#include "../harness.h"
#include <dlfcn.h>

void *next_function(const char *name);

/* Main and the threads use it by turns. */
static struct area {
    char *block;
    pthread_mutex_t mutex;
    long count, series[4];
} *area;

/* The C library, and the program with all that it was linked with. */
static void *library, *everything;

static void *in_library(const char *name)
{
    return dlsym(library, name);
}

static void *in_library_of_version(const char *name)
{
    return dlvsym(library, name, "GLIBC_2.2.5");
}

static void *anywhere(const char *name)
{
    return dlsym(everything, name);
}

static void *in_handle_of_thread(const char *name)
{
    return dlsym(dlopen("libc.so.6", RTLD_LAZY), name);
}

typedef void *lookup(const char *name);

static lookup *const LOOKUPS[] = {in_library, in_library_of_version, anywhere, in_handle_of_thread, next_function};

static lookup *look;

static void *count(void *rounds)
{
    int (*lock)(pthread_mutex_t *) = look("pthread_mutex_lock"), (*unlock)(pthread_mutex_t *) = look("pthread_mutex_unlock");
    for (long round = 0; round < (long)rounds; round++) {
        lock(&area->mutex);
        area->count++;
        unlock(&area->mutex);
    }
    return NULL;
}

/* What main has put there, and where its series of random numbers has come to. */
static long use_block(void)
{
    int (*draw)(void) = look("rand");
    EXPECT(0, (long)dlsym(library, "no_such_function"));
    REQUIRE(dlerror() && !dlerror());
    REQUIRE(dlopen(NULL, RTLD_NOW) == everything && dlopen("libc.so.6", RTLD_NOW) == library);
    EXPECT(0, strcmp(area->block, "from main"));
    EXPECT(area->series[2], draw());
    void (*release)(void *) = look("free");
    release(area->block);
    char *(*copy)(const char *) = look("strdup");
    area->block = copy("from a thread");
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 2000);
    area = malloc(sizeof *area);
    library = dlopen("libc.so.6", RTLD_NOW);
    everything = dlopen(NULL, RTLD_NOW);
    REQUIRE(library && everything);
    EXPECT(0, (long)dlsym(library, "no_such_function"));
    REQUIRE(dlerror());
    for (size_t way = 0; way < sizeof LOOKUPS / sizeof *LOOKUPS; way++) {
        look = LOOKUPS[way];
        memset(area, 0, sizeof *area);
        pthread_mutex_init(&area->mutex, NULL);
        int (*start)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = look("pthread_create");
        int (*join)(pthread_t, void **) = look("pthread_join");
        void (*seed)(unsigned) = look("srand");
        void *(*allocate)(size_t) = look("malloc");
        REQUIRE(start && join && seed && allocate);

        seed(7);
        for (int draw = 0; draw < 4; draw++) {
            area->series[draw] = rand();
        }
        seed(7);
        rand();
        rand();
        area->block = allocate(100);
        strcpy(area->block, "from main");
        EXPECT(0, in_new_thread(use_block));
        EXPECT(area->series[3], rand());
        EXPECT(0, strcmp(area->block, "from a thread"));
        free(area->block);

        pthread_t started[MAX_THREADS];
        for (int thread = 0; thread < threads; thread++) {
            EXPECT(0, start(&started[thread], NULL, count, (void *)(long)iterations));
        }
        for (int thread = 0; thread < threads; thread++) {
            EXPECT(0, join(started[thread], NULL));
        }
        EXPECT((long)threads * iterations, area->count);
    }
    return pass();
}
