/* Each thread of a region begins another one, which copies its array. (A single number gcc passes by its value.) */
#include <omp.h>
#include <stdio.h>

static int own[3];
#pragma omp threadprivate(own)

int main(void)
{
    omp_set_max_active_levels(2);
    int sum = 0;
    own[2] = 1;
#pragma omp parallel num_threads(2) copyin(own) reduction(+ : sum)
    {
        own[2] += omp_get_thread_num();
        int inner = 0;
#pragma omp parallel num_threads(2) copyin(own) reduction(+ : inner)
        inner += own[2];
        sum += inner;
    }
    printf("%d\n", sum);
    return 0;
}
