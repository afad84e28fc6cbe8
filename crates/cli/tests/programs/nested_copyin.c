/* Each thread of a region begins another one, which copies its variable. */
#include <omp.h>
#include <stdio.h>

static int own;
#pragma omp threadprivate(own)

int main(void)
{
    omp_set_max_active_levels(2);
    int sum = 0;
    own = 1;
#pragma omp parallel num_threads(2) copyin(own)
    {
        own += omp_get_thread_num();
#pragma omp parallel num_threads(2) copyin(own) reduction(+ : sum)
        sum += own;
    }
    printf("%d\n", sum);
    return 0;
}
