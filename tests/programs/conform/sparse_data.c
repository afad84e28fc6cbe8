/* A gibibyte of zeros of which little is used: threads write pages far from each other, beside initialised variables,
 * and into memory that the kernel is the first one to fill. */
#include "../harness.h"
#include <unistd.h>

#define GIB (1u << 30)
#define STRIDE (8u << 20)
#define PAGE 4096

static char zeros[GIB];
static int initialised[3] = {1, 2, 3};
static char last_of_all;
static char filled[3 * PAGE];

static long work(int self)
{
    long violations = 0;
    for (size_t at = (size_t)self * PAGE; at < GIB; at += STRIDE) {
        violations += zeros[at] != 0 || zeros[at + PAGE - 1] != 0;
        zeros[at] = (char)(self + 1);
    }
    if (self == 1) {
        int ends[2];
        EXPECT(0, pipe(ends));
        EXPECT(3, write(ends[1], "abc", 3));
        EXPECT(3, read(ends[0], filled + PAGE - 2, 3));
        last_of_all = (char)initialised[2];
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    long violations = run_threads(threads, work);
    for (size_t at = 0; at < GIB; at += STRIDE)
        for (int self = 0; self < threads; self++)
            violations += zeros[at + (size_t)self * PAGE] != self + 1;
    EXPECT(0, memcmp(filled + PAGE - 3, "\0abc", 5));
    EXPECT(3, last_of_all);
    return verdict(violations, "zeros, or what was written to them, were not common");
}
