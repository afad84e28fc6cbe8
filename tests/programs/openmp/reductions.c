/* OpenMP: reductions and atomic updates, for which gcc emits atomic instructions. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    static int numbers[10000];
    long sum = 0, counted = 0;
    int most = -1, every = ~0;
    int histogram[10] = {0};
#pragma omp parallel for
    for (int i = 0; i < 10000; i++)
        numbers[i] = (i * 7919) % 10007;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 100)
    for (int i = 0; i < 10000; i++)
        sum += numbers[i];
#pragma omp parallel for reduction(max : most) reduction(& : every)
    for (int i = 0; i < 10000; i++) {
        most = numbers[i] > most ? numbers[i] : most;
        every &= numbers[i] | 1;
    }
#pragma omp parallel for reduction(+ : histogram)
    for (int i = 0; i < 10000; i++)
        histogram[numbers[i] % 10]++;
#pragma omp parallel for
    for (int i = 0; i < 2000; i++) {
#pragma omp atomic
        counted++;
    }
    long expected = 0;
    int greatest = 0, kinds[10] = {0};
    for (int i = 0; i < 10000; i++) {
        int number = (i * 7919) % 10007;
        expected += number;
        greatest = number > greatest ? number : greatest;
        kinds[number % 10]++;
    }
    CHECK(sum == expected && most == greatest && every == 1, "sum %ld, most %d, common bits %d", sum, most, every);
    for (int i = 0; i < 10; i++)
        CHECK(histogram[i] == kinds[i], "%d numbers end in %d", histogram[i], i);
    CHECK(counted == 2000, "counted %ld", counted);
    return pass();
}
