/* A library that looks functions up behind itself, as those do that wrap them. */
#include <dlfcn.h>
#include <stddef.h>

void *next_function(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
