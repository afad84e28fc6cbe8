/* A library for dlopen that has thread-local variables, more than a C library would place beside its own, one of which begins with a
 * page. */
#include <stdint.h>

static __thread int local;
static __thread int large[15000] __attribute__((aligned(4096)));

int next_local(void)
{
    large[local % 15000]++;
    /* The compiler does not know that the place may be another one. */
    volatile uintptr_t place = (uintptr_t)large;
    return place % 4096 ? -1 : ++local + large[14999];
}
