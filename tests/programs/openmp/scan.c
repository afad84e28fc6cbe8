/* OpenMP: scans, inclusive and exclusive, and conditional lastprivate. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))
#define N 1000

static long numbers[N], sums[N], products[N];

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    omp_set_num_threads(threads);
    for (long round = 0; round < iterations; round++) {
        long sum = 3, most = 0, last = -1;
        for (int i = 0; i < N; i++)
            numbers[i] = (i * 37 + round) % 101;
#pragma omp parallel for reduction(inscan, + : sum) reduction(inscan, max : most)
        for (int i = 0; i < N; i++) {
            sum += numbers[i];
            most = most < numbers[i] ? numbers[i] : most;
#pragma omp scan inclusive(sum, most)
            sums[i] = sum;
            products[i] = most;
        }
        long expected = 3, highest = 0;
        for (int i = 0; i < N; i++) {
            expected += numbers[i];
            highest = highest < numbers[i] ? numbers[i] : highest;
            CHECK(sums[i] == expected && products[i] == highest, "inclusive %d: %ld %ld", i, sums[i], products[i]);
        }
        CHECK(sum == expected && most == highest, "inclusive: %ld %ld", sum, most);
        sum = 0;
#pragma omp parallel
#pragma omp for reduction(inscan, + : sum)
        for (int i = 0; i < N; i++) {
            sums[i] = sum;
#pragma omp scan exclusive(sum)
            sum += numbers[i];
        }
        expected = 0;
        for (int i = 0; i < N; i++) {
            CHECK(sums[i] == expected, "exclusive %d: %ld", i, sums[i]);
            expected += numbers[i];
        }
        CHECK(sum == expected, "exclusive: %ld", sum);
#pragma omp parallel
        {
#pragma omp for lastprivate(conditional : last) schedule(dynamic, 3)
            for (int i = 0; i < N; i++)
                if (numbers[i] == 100)
                    last = i;
        }
        long found = -1;
        for (int i = 0; i < N; i++)
            if (numbers[i] == 100)
                found = i;
        CHECK(last == found, "the last is %ld", last);
    }
    return pass();
}
