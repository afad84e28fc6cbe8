/* The release of 1,000 pages that were changed away from their home: a barrier that the other node has reached before.
 * One value is the time for one page.
 *
 * The argument says what is changed in each page: "bytes" 64 bytes in a row, "words" every other 32-bit word, "doubles"
 * every double. Main changes one bit of each page before each round, so that the pages' home has no reason to move from
 * its node. */
#include "measure.h"

#include <string.h>

enum { PAGES = 1000, ROUNDS = 10 };

static char *pages;
static const char *pattern;

static void change(char *page, int round)
{
    if (strcmp(pattern, "bytes") == 0) {
        memset(page + 1024, round + 1, 64);
    } else if (strcmp(pattern, "words") == 0) {
        volatile uint32_t *words = (volatile uint32_t *)page;
        for (int i = 1; i < PAGE / 4; i += 2)
            words[i] = words[i] * 3 + (uint32_t)round + 1;
    } else {
        double *numbers = (double *)page;
        for (int i = 0; i < PAGE / 8; i++)
            numbers[i] = (double)i + round * 0.37;
    }
}

static void main_changes(int round)
{
    for (long i = 0; i < PAGES; i++)
        pages[i * PAGE] = (char)(pages[i * PAGE] + round + 1);
}

static void home(void)
{
    main_changes(0);
    meet();
    meet(); /* the other thread's first change may take the homes along */
    for (int round = 0; round < 4; round++) {
        main_changes(round); /* brings them back */
        meet();
    }
    for (int round = 0; round < ROUNDS; round++) {
        main_changes(round);
        meet();
        meet();
        meet();
    }
}

static void *remote(void *unused)
{
    struct samples times = new_samples("release", ROUNDS);
    meet();
    for (long i = 0; i < PAGES; i++)
        pages[i * PAGE + 8] = 1;
    meet();
    for (int round = 0; round < 4; round++)
        meet();
    volatile char got;
    for (int round = 0; round < ROUNDS; round++) {
        meet();
        for (long i = 0; i < PAGES; i++)
            got = pages[i * PAGE];
        meet();
        for (long i = 0; i < PAGES; i++)
            change(pages + i * PAGE, round);
        int64_t start = now();
        meet();
        add_sample(&times, (now() - start) / PAGES);
    }
    (void)got;
    print_samples(&times);
    return unused;
}

int main(int argc, char **argv)
{
    must(argc != 2, "usage: release bytes|words|doubles");
    pattern = argv[1];
    pages = new_pages(PAGES);
    run_pair(home, remote);
    return 0;
}
