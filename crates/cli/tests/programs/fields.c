/* Main writes particles, and a thread on the other node reads one field of one of them: a hundred times, by turns. */
#include <pthread.h>
#include <stdio.h>

enum { TURNS = 100, PAGE = 4096, ROWS = 4, COLUMNS = 128 };
struct particle {
    double mass;
    double place[3];
};
static _Alignas(PAGE) struct particle grid[ROWS][COLUMNS];
static _Alignas(PAGE) pthread_barrier_t barrier;

static void *reads(void *argument)
{
    double sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_barrier_wait(&barrier);
        sum += ((volatile struct particle *)&grid[2][17])->place[1];
        pthread_barrier_wait(&barrier);
    }
    *(double *)argument = sum;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    double sum = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, reads, &sum);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++)
                grid[row][column].place[1] = turn;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
    printf("%.0f\n", sum);
    return 0;
}
