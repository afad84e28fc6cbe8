/* Creation and joining as release and acquire: no other synchronisation is used. */
#include "../harness.h"

static long input[MAX_THREADS], output[MAX_THREADS];

static long work(int self)
{
    output[self] = input[self] * 2 + self;
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 50);
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        for (int i = 0; i < threads; i++)
            input[i] = round * 1000 + i;
        run_threads(threads, work);
        for (int i = 0; i < threads; i++)
            violations += output[i] != (round * 1000 + i) * 2 + i;
    }
    return verdict(violations, "old data after create or join");
}
