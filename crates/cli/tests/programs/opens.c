/* Opens the library that it is told and says what came of it. It finds dlopen by its name: its file does not tell that it opens libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argc;
    void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    printf("%s\n", open(argv[1], RTLD_NOW) ? "opened" : dlerror());
    return 0;
}
