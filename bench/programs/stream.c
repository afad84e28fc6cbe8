/* "sequential-read": 256 MiB that main has written, read from beginning to end by the other thread. */
#include "measure.h"

static const size_t WORDS = (256u << 20) / sizeof(uint64_t);
static uint64_t *data;

static void writer(void)
{
    for (size_t i = 0; i < WORDS; i++)
        data[i] = i;
    meet();
    meet();
}

static void *reader(void *unused)
{
    struct samples times = new_samples("sequential-read", 1);
    meet();
    int64_t start = now();
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        sum += data[i];
    add_sample(&times, now() - start);
    meet();
    must(sum != (uint64_t)WORDS * (WORDS - 1) / 2, "wrong data");
    print_samples(&times);
    return unused;
}

int main(void)
{
    data = (uint64_t *)new_pages(WORDS * sizeof(uint64_t) / PAGE);
    run_pair(writer, reader);
    return 0;
}
