/* Atomic read-modify-write operations: additions, maxima by compare-and-swap and unique tickets. */
#include "../harness.h"
#include <stdatomic.h>

static atomic_long sum, greatest, ticket;
static unsigned char *owner; /* one byte per ticket */

static long work(int self)
{
    long violations = 0, previous = -1;
    for (long i = 0; i < iterations; i++) {
        atomic_fetch_add(&sum, i);
        long mine = i * threads + self, seen = atomic_load(&greatest);
        while (seen < mine && !atomic_compare_exchange_weak(&greatest, &seen, mine))
            ;
        long number = atomic_fetch_add(&ticket, 1);
        violations += number <= previous || owner[number] != 0;
        owner[number] = 1;
        previous = number;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    owner = calloc((size_t)(threads * iterations), 1);
    long violations = run_threads(threads, work);
    EXPECT(threads * (iterations * (iterations - 1) / 2), sum);
    EXPECT(threads * iterations - 1, greatest);
    EXPECT(threads * iterations, ticket);
    for (long i = 0; i < threads * iterations; i++)
        EXPECT(1, owner[i]);
    return verdict(violations, "a ticket was given twice");
}
