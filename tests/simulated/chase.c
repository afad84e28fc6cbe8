/* A pointer chase in 16 KiB, which stays in a first cache: what the hook of the simulator costs if it hits.
 *
 * usage: chase MILLIONS; prints the sum of what it has passed, which depends on the count only. */
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 256 };

struct line {
    struct line *next;
    long value;
    char rest[48];
};

int main(int argc, char **argv)
{
    long count = (argc > 1 ? atol(argv[1]) : 10) * 1000000;
    struct line *lines = aligned_alloc(64, LINES * sizeof *lines);
    for (long i = 0; i < LINES; i++) {
        lines[i].next = &lines[(i + 97) % LINES];
        lines[i].value = i;
    }
    struct line *at = lines;
    for (long i = 0; i < count; i++)
        at = at->next;
    printf("%ld\n", at->value);
    return 0;
}
