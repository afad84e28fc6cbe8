// OpenMP: what a task's arguments own is given up, also if the task is cancelled before it has begun.
#include "../harness.h"
#include <omp.h>

static int made, gone;

struct Counted {
    Counted()
    {
        count(made);
    }
    Counted(const Counted &)
    {
        count(made);
    }
    ~Counted()
    {
        count(gone);
    }
    static void count(int &counter)
    {
#pragma omp critical
        counter++;
    }
};

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    omp_set_num_threads(threads);
    for (int round = 0; round < iterations; round++) {
        Counted one;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
        for (int i = 0; i < 30; i++) {
#pragma omp task firstprivate(one)
            {
                Counted inside;
#pragma omp cancel taskgroup if (i > 5)
            }
        }
    }
    if (made != gone)
        fail("%d made, %d gone", made, gone);
    return pass();
}
