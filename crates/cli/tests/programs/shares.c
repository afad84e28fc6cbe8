/* Data that threads share in all the ways that a report tells apart, each in pages of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 160, PAGE = 4096, NUMBERS = 4 * PAGE / sizeof(long), OWN = NUMBERS / THREADS, BODIES = 32 };
#define ALONE __attribute__((aligned(4096)))

/* An element for each thread, all in one page, and each in a page of its own. */
static ALONE volatile int counters[THREADS];
static ALONE volatile struct {
    int count;
    char rest[PAGE - sizeof(int)];
} padded[THREADS];
/* One field that one thread writes, and one that all read. */
static ALONE volatile struct {
    long limit;
    long unused[16];
    long hits;
} state;
/* What whoever has the lock adds to. */
static ALONE volatile struct {
    long count;
    double sum;
} record;
static ALONE long table[NUMBERS];
/* What the others point to is on the heap. Each thread has a part of the grid and reads the first number of the next. */
static ALONE volatile long *grid;
/* Each thread moves its bodies and looks at the masses of all. */
struct body {
    double mass;
    double position[3];
    long moves;
};
static volatile struct body *bodies;

static ALONE pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void add_to_record(long number)
{
    pthread_mutex_lock(&mutex);
    record.count++;
    record.sum += number;
    pthread_mutex_unlock(&mutex);
}

static void *work(void *argument)
{
    int self = (int)(long)argument;
    volatile long *own = grid + self * OWN;
    int border = (self + 1) % THREADS * OWN;
    double mass = 0;
    for (int round = 0; round < ROUNDS; round++) {
        counters[self]++;
        padded[self].count++;
        add_to_record(state.limit);
        if (self == 1)
            state.hits = state.hits + 1;
        long found = grid[border] + table[(round * 97 + self) % NUMBERS];
        for (int i = 0; i < BODIES; i++)
            mass += bodies[i].mass;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < OWN; i++)
            own[i] += found > 0;
        for (int i = self; i < BODIES; i += THREADS)
            bodies[i].moves++;
        pthread_barrier_wait(&barrier);
    }
    add_to_record((long)mass);
    return NULL;
}

static void make_grid(void)
{
    grid = aligned_alloc(PAGE, NUMBERS * sizeof *grid);
    for (int i = 0; i < NUMBERS; i++)
        grid[i] = 1;
}

static void make_bodies(void)
{
    bodies = aligned_alloc(PAGE, PAGE);
    for (int i = 0; i < BODIES; i++)
        bodies[i] = (struct body){.mass = i};
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < NUMBERS; i++)
        table[i] = i;
    state.limit = 3;
    make_grid();
    make_bodies();
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int count = 0, moves = 0;
    for (int i = 0; i < THREADS; i++)
        count += counters[i] + padded[i].count;
    for (int i = 0; i < BODIES; i++)
        moves += bodies[i].moves;
    printf("%d %d %ld %.0f %ld\n", count, moves, record.count, record.sum, state.hits);
    return 0;
}
