/* OpenMP: tasks that make tasks, groups of them, what they depend on, loops of them. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

static int fibonacci(int n)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) final(n < 9)
    a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 6)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

struct tree {
    struct tree *left, *right;
    int value;
};

static struct tree *grow(int depth)
{
    struct tree *tree = malloc(sizeof *tree);
    tree->value = depth;
    tree->left = tree->right = NULL;
    if (depth > 0) {
#pragma omp task
        tree->left = grow(depth - 1);
#pragma omp task
        tree->right = grow(depth - 1);
    }
    return tree; /* its children are still being made: the barrier waits for them */
}

static long count(const struct tree *tree)
{
    return tree ? tree->value + count(tree->left) + count(tree->right) : 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    int result = 0, chain = 0, seen[10] = {0}, inside = 0, after = -1, readers[8] = {0}, source = 0;
    static double numbers[1000];
    struct tree *tree = NULL;
#pragma omp parallel
#pragma omp single
    result = fibonacci(17);
    CHECK(result == 1597, "the Fibonacci number is %d", result);
#pragma omp parallel
    {
#pragma omp single nowait
        tree = grow(7);
    }
    CHECK(count(tree) == 247, "the tree counts %ld", count(tree));
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 10; i++) {
#pragma omp task depend(inout : chain) firstprivate(i)
            {
                chain = chain * 2 + i;
                seen[i] = chain;
            }
        }
#pragma omp task depend(out : source)
        source = 41;
        for (int i = 0; i < 8; i++) {
#pragma omp task depend(in : source) firstprivate(i)
            readers[i] = source + i;
        }
#pragma omp task depend(inout : source) if (0)
        source++;
        CHECK(source == 42 && readers[7] == 48, "a task ran before those that it depends on");
#pragma omp taskwait
#pragma omp taskgroup
        {
            for (int i = 0; i < 20; i++) {
#pragma omp task
                {
#pragma omp task
                    {
#pragma omp critical
                        inside++;
                    }
                }
            }
        }
        after = inside;
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < 1000; i++)
            numbers[i] = i * 0.5;
#pragma omp taskloop num_tasks(9)
        for (unsigned long long i = 1000; i > 0; i -= 10)
            numbers[i - 1] += 1;
    }
    int expected = 0;
    for (int i = 0; i < 10; i++) {
        expected = expected * 2 + i;
        CHECK(seen[i] == expected, "link %d of the chain is %d", i, seen[i]);
    }
    for (int i = 0; i < 8; i++)
        CHECK(readers[i] == 41 + i, "reader %d has read %d", i, readers[i]);
    CHECK(after == 20, "the group ended after %d of its tasks", after);
    for (int i = 0; i < 1000; i++)
        CHECK(numbers[i] == i * 0.5 + (i % 10 == 9), "number %d is %f", i, numbers[i]);
    return pass();
}
