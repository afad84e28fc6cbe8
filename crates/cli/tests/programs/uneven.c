/* Loops of OpenMP, of which one has all its work in the second half. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum { LENGTH = 20, ROUNDS = 4 };

static int done[LENGTH];

/* Works for so many milliseconds. */
static void work(int i, long milliseconds)
{
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
    done[i]++;
}

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp for
            for (int i = 0; i < LENGTH; i++)
                work(i, 1);
#pragma omp for schedule(static)
            for (int i = 0; i < LENGTH; i++) /* uneven */
                work(i, i < LENGTH / 2 ? 0 : 5);
#pragma omp for schedule(dynamic)
            for (int i = 0; i < LENGTH; i++)
                work(i, 1);
        }
    }
    int sum = 0;
    for (int i = 0; i < LENGTH; i++)
        sum += done[i];
    printf("%d iterations\n", sum);
    return 0;
}
