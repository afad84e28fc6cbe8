/* Opens the library that it is told and says what came of it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argc;
    printf("%s\n", dlopen(argv[1], RTLD_NOW) ? "opened" : dlerror());
    return 0;
}
