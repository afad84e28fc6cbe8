/* OpenMP: reductions by tasks, on taskgroup, taskloop, parallel, for, sections and scope. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

static void grow(int depth, long *sums)
{
#pragma omp task in_reduction(+ : sums[0 : 4])
    {
        sums[depth % 4] += depth;
        if (depth > 0) {
            grow(depth - 1, sums);
            grow(depth - 1, sums);
        }
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 3);
    omp_set_num_threads(threads);
    for (long round = 0; round < iterations; round++) {
        long sum = 1, sums[4] = {0};
        double product = 1;
        unsigned bits = ~0u;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum) task_reduction(* : product) task_reduction(& : bits)
        for (int i = 0; i < 40; i++) {
#pragma omp task in_reduction(+ : sum) in_reduction(* : product) in_reduction(& : bits)
            {
                sum += i;
                if (i < 10)
                    product *= 2;
                bits &= ~(1u << (i % 20));
#pragma omp task in_reduction(+ : sum)
                sum += 1000;
            }
        }
        CHECK(sum == 40781, "the sum is %ld", sum);
        CHECK(product == 1024, "the product is %f", product);
        CHECK(bits == 0xfff00000, "the bits are %x", bits);

#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sums[0 : 4])
        grow(6, sums);
        CHECK(sums[0] == 4 * 4 && sums[1] == 32 + 2 * 5, "%ld %ld", sums[0], sums[1]);
        CHECK(sums[2] == 16 * 2 + 6 && sums[3] == 8 * 3, "%ld %ld", sums[2], sums[3]);

        sum = 5;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : sum) grainsize(3)
        for (int i = 0; i < 100; i++)
            sum += i;
        CHECK(sum == 4955, "the sum of a taskloop is %ld", sum);
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : sum)
        for (int i = 0; i < round - 5; i++)
            sum += i;
        CHECK(sum == 4955, "the sum of an empty taskloop is %ld", sum);

        long all = 0;
#pragma omp parallel reduction(task, + : all)
        {
            for (int i = 1; i <= 10; i++) {
#pragma omp task in_reduction(+ : all)
                all += i;
            }
            if (omp_get_thread_num() == 0)
                all += 7;
        }
        CHECK(all == 55L * threads + 7, "the sum of a region is %ld", all);

        long loop = 2, most = -1;
#pragma omp parallel
        {
#pragma omp for reduction(task, + : loop) schedule(dynamic, 3)
            for (int i = 0; i < 50; i++) {
                loop++;
#pragma omp task in_reduction(+ : loop)
                loop += i;
            }
#pragma omp for reduction(task, max : most) schedule(static)
            for (int i = 0; i < 50; i++) {
#pragma omp task in_reduction(max : most)
                if (most < i)
                    most = i;
            }
#pragma omp for reduction(task, + : loop) schedule(guided)
            for (unsigned long long i = 20; i > 10; i--) {
                loop += 10000;
            }
        }
        CHECK(loop == 2 + 50 + 1225 + 100000, "the sum of a loop is %ld", loop);
        CHECK(most == 49, "the most is %ld", most);

        long parts = 0, scope = 0, plain = 0, more = 1;
#pragma omp parallel
        {
#pragma omp sections reduction(task, + : parts)
            {
#pragma omp section
                {
#pragma omp task in_reduction(+ : parts)
                    parts += 1;
                }
#pragma omp section
                parts += 20;
#pragma omp section
                {
#pragma omp task in_reduction(+ : parts)
                    parts += 300;
                }
            }
#pragma omp scope reduction(task, + : scope)
            {
#pragma omp task in_reduction(+ : scope)
                scope += 3;
            }
#pragma omp scope reduction(+ : plain, more)
            {
                plain += 2;
                more += 1;
            }
        }
        CHECK(parts == 321, "the sum of sections is %ld", parts);
        CHECK(scope == 3L * threads && plain == 2L * threads && more == 1L + threads, "the sums of scopes are %ld %ld", scope, plain);
    }
    return pass();
}
