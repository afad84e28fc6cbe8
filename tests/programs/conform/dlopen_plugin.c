/* A library is opened while threads run on all nodes; each calls its functions, and its variables are common. */
#include "../harness.h"
#include "../libraries/plugin.h"
#include <dlfcn.h>

static pthread_barrier_t barrier;
static void *volatile library;
static const struct plugin *plugin;
static int opener;

static long work(int self)
{
    long violations = 0;
    pthread_barrier_wait(&barrier);
    if (self == opener) {
        library = dlopen("libplugin.so", RTLD_LAZY | RTLD_LOCAL);
        if (!library)
            fail("%s", dlerror());
        plugin = dlsym(library, "plugin");
    }
    pthread_barrier_wait(&barrier);
    /* A handle is good for all threads, and a second one is the same. */
    int (*calls)(void) = (int (*)(void))dlsym(library, "plugin_calls");
    violations += !calls || dlsym(library, "plugin") != plugin;
    violations += dlsym(library, "absent") != NULL || !dlerror() || dlerror() != NULL;
    /* It has no versions. */
    violations += dlvsym(library, "plugin", "V_1") != NULL || !dlerror() || dlerror() != NULL;
    void *again = dlopen("libplugin.so", RTLD_NOW);
    violations += again != library || dlclose(again) != 0;
    violations += plugin->twice(self) != 2 * self;
    violations += strcmp(plugin->name(), "a name among the constants") != 0;
    for (int i = 0; i < 50; i++)
        violations += plugin->counted(10 + self) != 2;
    char text[64];
    snprintf(text, sizeof text, "%s", plugin->name());
    violations += strlen(text) != 26;
    pthread_barrier_wait(&barrier);
    violations += calls() != 50 * threads || plugin->table[10 + self] != 50 * (10 + self);
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    opener = threads / 2;
    EXPECT(0, dlopen("libplugin.so", RTLD_NOW | RTLD_NOLOAD) != NULL);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    long violations = run_threads(threads, work);
    REQUIRE(dlopen("/nowhere/libplugin.so", RTLD_NOW) == NULL && dlerror() != NULL);
    /* The system's own: found by its name, used by whoever opens it. */
    void *mathematics = dlopen("libm.so.6", RTLD_NOW);
    REQUIRE(mathematics != NULL);
    double (*root)(double) = (double (*)(double))dlsym(mathematics, "sqrt");
    REQUIRE(root(49.0) == 7.0);
    EXPECT(0, dlclose(mathematics));
    return verdict(violations, "the plugin was not the same everywhere");
}
