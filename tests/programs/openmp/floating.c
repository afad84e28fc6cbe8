/* The threads of a region compute as the one that begins it does. gcc's library has them do so from when they first begin, clang's in each
 * region. */
#include "../harness.h"
#include <omp.h>
#include <xmmintrin.h>

enum { TINY_IS_ZERO = 0x8040 };

/* The number of threads that take tiny numbers for zero, without the first one; and whether that one does. */
static int computing(bool *first)
{
    volatile double tiny = 1e-300;
    int others = 0;
    bool own = false;
#pragma omp parallel num_threads(threads) reduction(+ : others)
    {
        if (omp_get_thread_num() > 0)
            others += tiny * 1e-15 == 0;
        else
            own = tiny * 1e-15 == 0;
    }
    *first = own;
    return others;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    bool first;
    _mm_setcsr(_mm_getcsr() | TINY_IS_ZERO);
    EXPECT(threads - 1, computing(&first));
    EXPECT(true, first);
    _mm_setcsr(_mm_getcsr() & ~(unsigned)TINY_IS_ZERO);
#ifdef __clang__
    EXPECT(0, computing(&first));
#else
    EXPECT(threads - 1, computing(&first));
#endif
    EXPECT(false, first);
    return pass();
}
