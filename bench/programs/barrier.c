/* "barrier": two threads meet over and over with nothing written in between. One value is one meeting, on average over
 * a batch. */
#include "measure.h"

enum { BATCH = 1000, BATCHES = 10 };

static void first(void)
{
    for (long i = 0; i < (long)BATCH * (BATCHES + 1); i++)
        meet();
}

static void *second(void *unused)
{
    struct samples times = new_samples("barrier", BATCHES);
    for (int batch = -1; batch < BATCHES; batch++) {
        int64_t start = now();
        for (int i = 0; i < BATCH; i++)
            meet();
        if (batch >= 0)
            add_sample(&times, (now() - start) / BATCH);
    }
    print_samples(&times);
    return unused;
}

int main(void)
{
    run_pair(first, second);
    return 0;
}
