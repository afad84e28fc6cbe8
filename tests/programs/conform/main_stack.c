/* Where main's stack is, as collectors of garbage ask for it: the loader and the C library agree. */
#include "../harness.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    char **end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    REQUIRE(end != NULL);
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    EXPECT(0, pthread_getattr_np(pthread_self(), &attributes));
    EXPECT(0, pthread_attr_getstack(&attributes, &stack, &size));
    EXPECT(0, pthread_attr_destroy(&attributes));
    char *here = (char *)&attributes, *top = (char *)stack + size;
    REQUIRE((char *)stack < here && here < *end && *end <= top);
    REQUIRE(*end - here < 1 << 20);
    return pass();
}
