/* OpenMP: dependence objects, and dependences of the kind mutexinoutset. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    omp_set_num_threads(threads);
    for (long round = 0; round < iterations; round++) {
        int source = 0, readers[4] = {0}, after = 0, sum = 0, parts[4] = {0};
        omp_depend_t writes, reads;
#pragma omp depobj(writes) depend(inout : source)
#pragma omp depobj(reads) depend(inout : source)
#pragma omp depobj(reads) update(in)
#pragma omp parallel
#pragma omp single
        {
#pragma omp task depend(depobj : writes)
            source = 7;
            for (int i = 0; i < 4; i++) {
#pragma omp task depend(depobj : reads)
                readers[i] = source + i;
            }
#pragma omp task depend(depobj : writes)
            {
                source = 8;
                after = readers[0] + readers[1] + readers[2] + readers[3];
            }
            for (int i = 0; i < 4; i++) {
#pragma omp task depend(mutexinoutset : sum) depend(in : source)
                sum += source;
            }
#pragma omp task depend(in : sum)
            parts[0] = sum;
            for (int i = 1; i < 4; i++) {
#pragma omp task depend(inout : parts)
                parts[i] = i;
            }
#pragma omp task depend(inout : parts) depend(inout : sum)
            sum = parts[0] + parts[1] + parts[2] + parts[3];
        }
#pragma omp depobj(writes) destroy
#pragma omp depobj(reads) destroy
        CHECK(after == 34, "the readers have read %d", after);
        CHECK(sum == 38, "the sum is %d", sum);
    }
    return pass();
}
