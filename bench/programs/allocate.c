/* Small blocks that come and go, as lists and trees of a program do.
 *
 * One value of "allocation" is a malloc and its free, on average over a batch. Main waits while the other thread works. */
#include "measure.h"

enum { BLOCKS = 1000, BYTES = 64, BATCHES = 200 };

static void home(void)
{
    meet();
}

static void *remote(void *unused)
{
    static char *block[BLOCKS];
    struct samples times = new_samples("allocation", BATCHES);
    for (int batch = -1; batch < BATCHES; batch++) {
        int64_t start = now();
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = malloc(BYTES);
            must(block[i] == NULL, "malloc");
            block[i][0] = (char)i;
        }
        for (int i = 0; i < BLOCKS; i++)
            free(block[i]);
        if (batch >= 0) /* the one before touches the memory for the first time */
            add_sample(&times, (now() - start) / BLOCKS);
    }
    meet();
    print_samples(&times);
    return unused;
}

int main(void)
{
    run_pair(home, remote);
    return 0;
}
