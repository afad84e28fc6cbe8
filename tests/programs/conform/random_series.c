/* rand, drand48 and their relatives: their state is one for all threads, wherever these run. */
#include "../harness.h"
#include <sys/wait.h>
#include <unistd.h>

#define EACH 1000
#define MOST 64

/* Runs a part in a thread for each number, one after the other: each on the next node. */
static void one_by_one(long (*part)(int self))
{
    harness_work = part;
    for (int i = 0; i < threads; i++) {
        pthread_t id;
        void *result = NULL;
        EXPECT(0, pthread_create(&id, NULL, harness_thread, (void *)(intptr_t)i));
        EXPECT(0, pthread_join(id, &result));
        EXPECT(0, (intptr_t)result);
    }
}

/* The numbers that were drawn, for main to print. */
static double drawn[100000];
static int count;

static void note(double number)
{
    drawn[count++] = number;
}

static void print(const char *what)
{
    printf("%s:", what);
    for (int i = 0; i < count; i++)
        printf(" %.17g", drawn[i]);
    printf("\n");
    count = 0;
}

static unsigned short own[3] = {1, 2, 3};

static long draw_random(int self)
{
    (void)self;
    for (int i = 0; i < 3; i++) {
        note(rand());
        note(random());
    }
    return 0;
}

static long draw_48(int self)
{
    (void)self;
    for (int i = 0; i < 2; i++) {
        note(drand48());
        note(lrand48());
        note(mrand48());
        note(erand48(own));
        note(nrand48(own));
        note(jrand48(own));
    }
    return 0;
}

static long seed_random(int self)
{
    if (self % 2)
        srand(self);
    else
        srandom(self + 100);
    note(random());
    return 0;
}

/* Every second thread seeds; the others draw from that. */
static long seed_48(int self)
{
    unsigned short words[7] = {self, 3, 4, 5, 6, 7, 8};
    unsigned short *before = NULL;
    switch (self % 4) {
    case 0:
        srand48(self + 5);
        break;
    case 2:
        before = seed48(words);
        for (int i = 0; i < 3; i++)
            note(before[i]);
        break;
    case 3:
        lcong48(words);
        break;
    }
    return draw_48(self);
}

/* Buffers of all sizes, in the program's data, in the heap and on the stack of main. */
static char *buffers[MOST], *former[MOST];
static char small[8], middle[32];
static const int sizes[] = {8, 32, 64, 128, 256};

static long new_buffer(int self)
{
    int size = sizes[self % 5];
    buffers[self] = size == 8 && self < 5 ? small : size == 32 && self < 5 ? middle : malloc(size);
    former[self] = initstate(self + 7, buffers[self], size);
    REQUIRE(former[self] != NULL);
    if (self > 0)
        REQUIRE(former[self] == buffers[self - 1]);
    errno = 0;
    REQUIRE(initstate(1, buffers[self], 7) == NULL && errno == EINVAL);
    note(random());
    return 0;
}

/* Goes back to the buffer of another thread. */
static long old_buffer(int self)
{
    REQUIRE(setstate(buffers[(self + 1) % threads]) != NULL);
    note(random());
    return 0;
}

static long first_buffer(int self)
{
    if (self == 0)
        REQUIRE(setstate(former[0]) == buffers[0]);
    return draw_random(self);
}

/* All draw at the same time. The C library's lrand48 is not safe to call from several threads at once. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long numbers[MOST * EACH], more[MOST * EACH];

static long draw_many(int self)
{
    for (int i = 0; i < EACH; i++) {
        numbers[self * EACH + i] = i % 2 ? rand() : random();
        pthread_mutex_lock(&mutex);
        more[self * EACH + i] = lrand48();
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return x < y ? -1 : x > y;
}

/* The numbers together are the series from the seed on. */
static void together(void)
{
    static long series[MOST * EACH], series_48[MOST * EACH];
    int all = threads * EACH;
    srand(20);
    srand48(20);
    for (int i = 0; i < all; i++) {
        series[i] = rand();
        series_48[i] = lrand48();
    }
    srand(20);
    srand48(20);
    EXPECT(0, run_threads(threads, draw_many));
    qsort(series, all, sizeof(long), by_value);
    qsort(series_48, all, sizeof(long), by_value);
    qsort(numbers, all, sizeof(long), by_value);
    qsort(more, all, sizeof(long), by_value);
    for (int i = 0; i < all; i++) {
        REQUIRE(numbers[i] == series[i]);
        REQUIRE(more[i] == series_48[i]);
    }
}

/* A child goes on from where its parent is, and so does the parent. */
static void forked(void)
{
    unsigned short words[7] = {9, 8, 7, 6, 5, 4, 3};
    srand(3);
    lcong48(words);
    note(rand());
    note(drand48());
    for (int child = 1; child >= 0; child--) {
        pid_t process = child ? fork() : 0;
        REQUIRE(process >= 0);
        if (process > 0) {
            int status = 0;
            REQUIRE(waitpid(process, &status, 0) == process && status == 0);
            continue;
        }
        draw_random(0);
        draw_48(0);
        if (child) {
            print("child");
            fflush(stdout);
            _exit(0);
        }
    }
    print("parent");
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(threads <= MOST);
    draw_random(0);
    draw_48(0);
    print("no seed");
    fflush(stdout);
    forked();
    own[0] = 77;
    draw_random(0);
    one_by_one(draw_random);
    draw_random(0);
    print("rand");
    srand(42);
    one_by_one(draw_random);
    print("srand");
    one_by_one(seed_random);
    draw_random(0);
    print("srand by threads");
    srand48(42);
    draw_48(0);
    one_by_one(draw_48);
    draw_48(0);
    print("drand48");
    one_by_one(seed_48);
    draw_48(0);
    print("drand48, seeded by threads");
    one_by_one(new_buffer);
    one_by_one(old_buffer);
    one_by_one(first_buffer);
    draw_random(0);
    print("initstate");
    together();
    return pass();
}
