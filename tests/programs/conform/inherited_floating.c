/* A thread computes as the one that creates it does: rounding, and tiny numbers for zero as after -ffast-math; and it has
 * its name. */
#include "../harness.h"
#include <xmmintrin.h>

enum { THREADS = 4, TINY_IS_ZERO = 0x8040, NEAREST = 0, DOWN = 1, UP = 2, TO_ZERO = 3 };

struct mode {
    unsigned vector;
    unsigned short classic;
    char name[16];
};

static struct mode own(void)
{
    struct mode mode = {.vector = _mm_getcsr() & ~0x3fu};
    __asm__("fnstcw %0" : "=m"(mode.classic));
    EXPECT(0, pthread_getname_np(pthread_self(), mode.name, sizeof mode.name));
    return mode;
}

static void round_to(unsigned direction)
{
    unsigned short classic;
    __asm__("fnstcw %0" : "=m"(classic));
    classic = (unsigned short)((classic & ~0xc00u) | direction << 10);
    __asm__("fldcw %0" : : "m"(classic));
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | direction << 13);
}

static void expect(const struct mode *wanted)
{
    struct mode found = own();
    EXPECT(wanted->vector, found.vector);
    EXPECT(wanted->classic, found.classic);
    EXPECT(0, strcmp(wanted->name, found.name));
}

static void *check(void *wanted)
{
    expect(wanted);
    return NULL;
}

/* Creates a thread on each node, which compute as it does. */
static void *change_and_create(void *argument)
{
    long self = (long)argument;
    static const unsigned directions[THREADS] = {NEAREST, UP, DOWN, TO_ZERO};
    char name[16];
    snprintf(name, sizeof name, "number %ld", self);
    EXPECT(0, pthread_setname_np(pthread_self(), name));
    round_to(directions[self]);
    _mm_setcsr(self % 2 ? _mm_getcsr() | TINY_IS_ZERO : _mm_getcsr() & ~(unsigned)TINY_IS_ZERO);
    struct mode mode = own();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(0, pthread_create(&threads[i], NULL, check, &mode));
    for (int i = 0; i < THREADS; i++)
        EXPECT(0, pthread_join(threads[i], NULL));
    expect(&mode);
    return NULL;
}

/* What is left of numbers that are tiny, and of thirds. */
static long compute(int self)
{
    volatile double tiny = 1e-300, third = 3;
    EXPECT(1, tiny * 1e-15 == 0);
    EXPECT(1, 1 / third > 0.33333333333333331);
    return self;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    _mm_setcsr(_mm_getcsr() | TINY_IS_ZERO);
    round_to(UP);
    run_threads(THREADS, compute);
    run_threads(2, compute);
    round_to(NEAREST);
    pthread_t creators[THREADS];
    for (long i = 0; i < THREADS; i++)
        EXPECT(0, pthread_create(&creators[i], NULL, change_and_create, (void *)i));
    for (int i = 0; i < THREADS; i++)
        EXPECT(0, pthread_join(creators[i], NULL));
    return pass();
}
