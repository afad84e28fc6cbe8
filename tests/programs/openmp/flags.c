/* Threads of a team that wait for each other by `atomic write release` and `atomic read acquire`, as in the examples of the standard. */
#include "../harness.h"
#include <omp.h>
#include <sched.h>

static long data[PAGE / sizeof(long)], flag;

static long pass_on(long rounds)
{
    long violations = 0;
#pragma omp parallel num_threads(threads) reduction(+ : violations)
    for (long round = omp_get_thread_num(); round < rounds; round += omp_get_num_threads()) {
        long seen;
        do {
#pragma omp atomic read acquire
            seen = flag;
        } while (seen != round);
        violations += data[9] != round;
        data[9] = round + 1;
#pragma omp atomic write release
        flag = round + 1;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 60);
    return verdict(pass_on(iterations), "old data after the flag");
}
