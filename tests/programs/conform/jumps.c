/* setjmp and longjmp over many frames, in main and in threads. */
#include "../harness.h"
#include <setjmp.h>

static long deep(jmp_buf *back, int depth, int give)
{
    volatile char frame[1000];
    frame[depth % 1000] = (char)depth;
    if (depth == 0)
        longjmp(*back, give);
    return deep(back, depth - 1, give) + frame[depth % 1000];
}

static long work(int self)
{
    volatile long jumps = 0;
    for (volatile long i = 0; i < iterations; i++) {
        jmp_buf back;
        int got = setjmp(back);
        if (got == 0)
            deep(&back, 50 + self, self + 1);
        EXPECT(self + 1, got);
        jumps++;
    }
    EXPECT(iterations, jumps);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 100);
    work(0);
    run_threads(threads, work);
    return pass();
}
