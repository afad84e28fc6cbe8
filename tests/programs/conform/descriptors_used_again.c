/* The number of a descriptor that one thread closes is another one's new file at once, also for threads that used the former. */
#include "../harness.h"
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <unistd.h>

/* What one thread hands to another: the pipe to read from, which holds its own number of the pair and round. */
static struct pair {
    sem_t handed, done;
    int from;
} pairs[MAX_THREADS / 2];

static pthread_barrier_t over;

static int expected(int pair, int round)
{
    return pair << 24 | round;
}

/* Opens pipes; closes each second one itself. */
static long opens(int number)
{
    struct pair *pair = &pairs[number];
    for (int round = 0; round < iterations; round++) {
        int ends[2], text = expected(number, round);
        REQUIRE(pipe(ends) == 0);
        EXPECT(sizeof text, write(ends[1], &text, sizeof text));
        EXPECT(0, close(ends[1]));
        pair->from = ends[0];
        sem_post(&pair->handed);
        sem_wait(&pair->done);
        if (round % 2)
            EXPECT(0, close(ends[0]));
    }
    return 0;
}

static long reads(int number)
{
    struct pair *pair = &pairs[number];
    long wrong = 0;
    for (int round = 0; round < iterations; round++) {
        sem_wait(&pair->handed);
        int text = -1;
        EXPECT(sizeof text, read(pair->from, &text, sizeof text));
        wrong += text != expected(number, round);
        EXPECT(0, read(pair->from, &text, sizeof text));
        if (round % 2 == 0)
            EXPECT(0, close(pair->from));
        sem_post(&pair->done);
    }
    return wrong;
}

/* A queue that another thread closes. */
static void queue(int number, bool is_opener)
{
    struct pair *pair = &pairs[number];
    char name[40];
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    if (!is_opener) {
        sem_wait(&pair->handed);
        EXPECT(0, mq_close(pair->from));
        sem_post(&pair->done);
        return;
    }
    snprintf(name, sizeof name, "/descriptors.%d.%d", getpid(), number);
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    REQUIRE(queue >= 0);
    EXPECT(0, mq_unlink(name));
    pair->from = queue;
    sem_post(&pair->handed);
    sem_wait(&pair->done);
    EXPECT(-1, mq_getattr(queue, &attributes));
    EXPECT(EBADF, errno);
}

/* With two nodes, all that open are on one and all that read on the other. */
static long work(int self)
{
    long wrong = self % 2 ? reads(self / 2) : opens(self / 2);
    pthread_barrier_wait(&over);
    for (int pair = 0; pair < threads / 2; pair++) {
        if (self / 2 == pair)
            queue(pair, self % 2 == 0);
        pthread_barrier_wait(&over);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 8, 200);
    REQUIRE(threads % 2 == 0);
    for (int i = 0; i < threads / 2; i++) {
        REQUIRE(sem_init(&pairs[i].handed, 0, 0) == 0);
        REQUIRE(sem_init(&pairs[i].done, 0, 0) == 0);
    }
    EXPECT(0, pthread_barrier_init(&over, NULL, threads));
    EXPECT(0, run_threads(threads, work));
    return pass();
}
