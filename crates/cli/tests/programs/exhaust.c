/* Asks for more memory than the span has, and for some that it has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    errno = 0;
    char *too_much = malloc((size_t)1 << 40);
    printf("%s %d\n", too_much ? "given" : "refused", errno == ENOMEM);
    char *little = malloc(100000);
    little[99999] = 1;
    printf("%s\n", little ? "given" : "refused");
    return 0;
}
