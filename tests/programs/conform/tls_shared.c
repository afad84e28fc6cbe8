/* Threads, main among them, write to each other's thread-local variables, and wait and lock there. Each has a large array of its
 * own besides, which all others read.
 */
#include "../harness.h"

#define LARGE (1 << 21)

struct own {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long count;
    int by_last;
    long (*function)(long, long);
};

static long twice_and(long number, long more)
{
    return 2 * number + more;
}

static __thread struct own mine = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, -1, twice_and};
static __thread char large[LARGE];

static struct own *owned[MAX_THREADS];
static char *arrays[MAX_THREADS];
static pthread_barrier_t barrier;

/* Calls a function by instructions that find its address in another thread's variable: a call, and a jump behind what a call pushes. */
#define BY(instructions, other, number, more)                                                                          \
    ({                                                                                                                 \
        long result, first = number, second = more;                                                                    \
        __asm__ volatile("sub $128, %%rsp\n" instructions "add $128, %%rsp"                                            \
                         : "=&a"(result), "+D"(first), "+S"(second)                                                    \
                         : [function] "b"(&(other)->function)                                                          \
                         : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");                                    \
        result;                                                                                                        \
    })

static long call(const struct own *other, long number)
{
    return BY("call *(%[function])\n", other, number, 2);
}

static long jump(const struct own *other, long number)
{
    return BY("lea 1f(%%rip), %%rax\npush %%rax\njmp *(%[function])\n1:\n", other, number, 1);
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;
    owned[me] = &mine;
    arrays[me] = large;
    memset(large, me + 1, LARGE);
    pthread_barrier_wait(&barrier);

    for (long i = 0; i < iterations; i++) {
        for (int k = 1; k < threads; k++) {
            struct own *other = owned[(me + k) % threads];
            pthread_mutex_lock(&other->lock);
            other->count++;
            other->by_last = me;
            pthread_cond_signal(&other->changed);
            pthread_mutex_unlock(&other->lock);
        }
    }
    pthread_mutex_lock(&mine.lock);
    while (mine.count < iterations * (threads - 1))
        pthread_cond_wait(&mine.changed, &mine.lock);
    EXPECT(iterations * (threads - 1), mine.count);
    REQUIRE(mine.by_last != me);
    pthread_mutex_unlock(&mine.lock);

    for (int k = 1; k < threads; k++) {
        int other = (me + k) % threads;
        for (long number = 0; number < 20; number++) {
            EXPECT(2 * number + 1, jump(owned[other], number));
            EXPECT(2 * number + 2, call(owned[other], number));
        }
        for (int at = me; at < LARGE; at += 4096)
            EXPECT((char)(other + 1), arrays[other][at]);
    }
    pthread_barrier_wait(&barrier);
    /* Marks the others' arrays, each in a place of its own. */
    for (int k = 1; k < threads; k++)
        arrays[(me + k) % threads][LARGE - 1 - me] = 0;
    pthread_barrier_wait(&barrier);
    for (int other = 0; other < threads; other++)
        EXPECT(other != me, large[LARGE - 1 - other] == 0);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t ids[MAX_THREADS];
    parse(argc, argv, 4, 100);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
    work((void *)0);
    for (int i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    return pass();
}
