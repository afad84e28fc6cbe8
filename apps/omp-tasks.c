/* Trees of tasks: Fibonacci's numbers without any sense of economy, and queens that cannot take each other.
 *
 * Each call for a Fibonacci number above the limit makes a task for one of its two calls and waits for it. Each
 * queen in the first rows makes a task for each place of the next one; their counts are added up by who waits for
 * them.
 */
#include "common.h"

#include <omp.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'f', "which Fibonacci number", 14, 30, 0, 60, 0},
    {'l', "below this one there are no tasks", 2, 2, 2, 60, 0},
    {'q', "queens", 7, 11, 1, 16, 0},
    {'d', "queens that make tasks", 2, 3, 0, 16, 0},
};
static struct app app = {"omp-tasks", "trees of tasks, OpenMP", specs, 4, NULL, NULL};

enum { MAX_QUEENS = 16 };

static long limit, queens, depth;
static long number, solutions;

static long fibonacci(long n)
{
    if (n < 2)
        return n;
    if (n < limit)
        return fibonacci(n - 1) + fibonacci(n - 2);
    long one, two;
#pragma omp task shared(one)
    one = fibonacci(n - 1);
    two = fibonacci(n - 2);
#pragma omp taskwait
    return one + two;
}

/* Solutions with queens in `row` rows, which attack these columns and diagonals of the next one. */
static long place(long row, unsigned columns, unsigned left, unsigned right)
{
    if (row == queens)
        return 1;
    long found[MAX_QUEENS] = {0}, sum = 0;
    unsigned all = (1u << queens) - 1;
    for (long c = 0; c < queens; c++) {
        unsigned here = 1u << c;
        if ((columns | left | right) & here)
            continue;
        unsigned next_left = (left | here) << 1 & all, next_right = (right | here) >> 1;
        if (row < depth) {
#pragma omp task shared(found)
            found[c] = place(row + 1, columns | here, next_left, next_right);
        } else
            found[c] = place(row + 1, columns | here, next_left, next_right);
    }
    if (row < depth) {
#pragma omp taskwait
    }
    for (long c = 0; c < queens; c++)
        sum += found[c];
    return sum;
}

static void work(void)
{
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
        number = fibonacci(specs[0].value);
        solutions = place(0, 0, 0, 0);
    }
}

int main(int argc, char **argv)
{
    static const long known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
    parse_options(&app, argc, argv);
    limit = specs[1].value;
    queens = specs[2].value;
    depth = specs[3].value;
    run_alone(work);
    printf("result: omp-tasks fibonacci %ld: %ld, %ld queens: %ld\n", specs[0].value, number, queens, solutions);
    if (self_check) {
        long a = 0, b = 1;
        for (long i = 0; i < specs[0].value; i++) {
            long next = a + b;
            a = b;
            b = next;
        }
        check(number == a, "the Fibonacci number is the sum of those before");
        check(solutions == known[queens], "that many queens are known to stand in that many ways");
    }
    return 0;
}
