/* Blocks of the program's heap, and what one of its threads is like, by functions that a library looks up in what it needs first. */
#include <pthread.h>
#include <stdlib.h>

void *deep_get(size_t size);
void deep_free(void *block);
int deep_on_stack(void);

void *deep_get(size_t size)
{
    return malloc(size);
}

void deep_free(void *block)
{
    free(block);
}

/* True if the calling thread's stack is where it is said to be. */
int deep_on_stack(void)
{
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &stack, &size))
        return 0;
    pthread_attr_destroy(&attributes);
    return (char *)&attributes > (char *)stack && (char *)&attributes < (char *)stack + size;
}
