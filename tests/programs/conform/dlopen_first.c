/* Plugins are opened by path before there are threads, and threads everywhere call them. */
#include "../harness.h"
#include "../libraries/plugin.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct plugin *plugin;

static long work(int self)
{
    long violations = 0;
    for (int i = 0; i < 100; i++)
        violations += plugin->counted(self) < 2;
    return violations + (plugin->twice(self) != 2 * self);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    REQUIRE(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/../libraries/libplugin.so");
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fail("%s", dlerror());
    plugin = dlsym(library, "plugin");
    REQUIRE(plugin != NULL);
    plugin->counted(1);
    /* A child process has the plugin, too. */
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
        _exit(plugin->twice(21) == 42 && strlen(plugin->name()) == 26 && plugin->table[1] == 3 ? 42 : 1);
    int status = 0;
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(42, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    long violations = run_threads(threads, work);
    int (*calls)(void) = (int (*)(void))dlsym(library, "plugin_calls");
    EXPECT(1 + 100 * threads, calls());
    return verdict(violations, "a plugin's function went wrong");
}
