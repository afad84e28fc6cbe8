/* OpenMP: threads are many work-sharing constructs ahead of others, in teams of changing size, inside each other, and in so many teams at
   a time that not all can have what few can. Each iteration is run once. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

enum { CONSTRUCTS = 25, COUNT = 40, TEAMS = 20 };
static int done[TEAMS][CONSTRUCTS][COUNT];

/* Of the constructs of a team; the threads meet once among them. */
static void work(int team, int meet)
{
    for (int c = 0; c < CONSTRUCTS; c++) {
        int *mine = done[team][c];
        /* The other threads go ahead. */
        if (c % 5 == omp_get_thread_num())
            for (volatile int i = 0; i < 2000; i++)
                ;
        switch (c % 5) {
        case 0:
#pragma omp for schedule(dynamic) nowait
            for (int i = 0; i < COUNT; i++)
                mine[i]++;
            break;
        case 1:
#pragma omp single nowait
            for (int i = 0; i < COUNT; i++)
                mine[i]++;
            break;
        case 2:
#pragma omp for schedule(guided, 3) nowait
            for (int i = 0; i < COUNT; i++)
                mine[i]++;
            break;
        case 3:
#pragma omp for schedule(monotonic : dynamic, 7) nowait
            for (int i = 0; i < COUNT; i++)
                mine[i]++;
            break;
        default:
#pragma omp sections nowait
            {
#pragma omp section
                for (int i = 0; i < COUNT / 2; i++)
                    mine[i]++;
#pragma omp section
                for (int i = COUNT / 2; i < COUNT; i++)
                    mine[i]++;
            }
        }
        if (c == meet) {
#pragma omp barrier
        }
    }
}

static void each_once(const char *what, int round)
{
    for (int t = 0; t < TEAMS; t++)
        for (int c = 0; c < CONSTRUCTS; c++)
            for (int i = 0; i < COUNT; i++) {
                CHECK(done[t][c][i] == round, "%s: iteration %d of construct %d of team %d was run %d times, not %d",
                      what, i, c, t, done[t][c][i], round);
            }
}

static void *begins_regions(void *team)
{
#pragma omp parallel num_threads(2)
    work((int)(intptr_t)team, 9);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 3);
    omp_set_max_active_levels(2);
    int rounds = 0;
    for (int i = 0; i < iterations; i++) {
        for (int team = 0; team < TEAMS; team++) {
            int size = 1 + (team + i) % (threads + 1);
#pragma omp parallel num_threads(size)
            work(team, 3 + team);
        }
        each_once("one after the other", ++rounds);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int team = 0; team < TEAMS; team++) {
#pragma omp parallel num_threads(2)
            work(team, 17);
        }
        each_once("inside others", ++rounds);
    }
    pthread_t ids[TEAMS];
    for (int team = 0; team < TEAMS; team++)
        EXPECT(0, pthread_create(&ids[team], NULL, begins_regions, (void *)(intptr_t)team));
    for (int team = 0; team < TEAMS; team++)
        EXPECT(0, pthread_join(ids[team], NULL));
    each_once("of many threads", ++rounds);
    /* More threads than a construct can be divided between in memory that all nodes have. */
    enum { MANY = 70 };
    int each[MANY * 3] = {0};
#pragma omp parallel num_threads(MANY)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < MANY * 3; i++)
            each[i]++;
#pragma omp single
        rounds++;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int i = 0; i < MANY * 3; i++)
        each[i]++;
    for (int i = 0; i < MANY * 3; i++)
        CHECK(each[i] == 2, "iteration %d of two loops was run %d times", i, each[i]);
    return pass();
}
