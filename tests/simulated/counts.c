/* Makes a number of loads and stores that can be counted in the source, and of misses that can be counted from the sizes. */
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000 };

int main(void)
{
    long *from = malloc(COUNT * sizeof *from), *to = malloc(COUNT * sizeof *to);
    for (long i = 0; i < COUNT; i++)
        from[i] = i;                /* COUNT stores */
    for (long i = 0; i < COUNT; i++)
        to[i] = from[i] + 1;        /* COUNT loads, COUNT stores */
    long sum = 0;
    for (long i = 0; i < COUNT; i++)
        sum += to[i];               /* COUNT loads */
    printf("%ld\n", sum);
    return 0;
}
