/* A thread on another node reads a table and writes a grid of the first node, and the first one reads the grid then: a known
 * number of lines each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64, TABLE = 1000, GRID = 500, ROUNDS = 3 };

static char table[TABLE * LINE] __attribute__((aligned(4096)));
static char *grid;

static void make_grid(void)
{
    grid = aligned_alloc(4096, GRID * LINE);
}

static void *work(void *argument)
{
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int at = 0; at < TABLE * LINE; at += LINE)
            sum += table[at];          /* TABLE misses in the first round */
    for (int at = 0; at < GRID * LINE; at += LINE)
        grid[at] = 2;                   /* GRID misses */
    *(long *)argument = sum;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    make_grid();
    for (int at = 0; at < TABLE * LINE; at += LINE)
        table[at] = 1;
    for (int at = 0; at < GRID * LINE; at += LINE)
        grid[at] = 1;
    if (pthread_create(&thread, NULL, work, &sum))
        return 1;
    pthread_join(thread, NULL);
    for (int at = 0; at < GRID * LINE; at += LINE)
        sum += grid[at];                /* GRID misses */
    printf("%ld\n", sum);
    return 0;
}
