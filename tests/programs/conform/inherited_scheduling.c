/* A thread has the nice value and the processors of the thread that has created it, also on another node. */
#include "../harness.h"
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

static cpu_set_t first;

static void *nested(void *unused)
{
    cpu_set_t own;
    EXPECT(7, getpriority(PRIO_PROCESS, (id_t)gettid()));
    EXPECT(0, sched_getaffinity(0, sizeof own, &own));
    REQUIRE(CPU_EQUAL(&first, &own));
    return unused;
}

static void *outer(void *other)
{
    pthread_t id;
    cpu_set_t own;
    EXPECT(5, getpriority(PRIO_PROCESS, (id_t)gettid()));
    EXPECT(0, sched_getaffinity(0, sizeof own, &own));
    REQUIRE(CPU_EQUAL((cpu_set_t *)other, &own));
    EXPECT(0, setpriority(PRIO_PROCESS, (id_t)gettid(), 7));
    EXPECT(0, sched_setaffinity(0, sizeof first, &first));
    EXPECT(0, pthread_create(&id, NULL, nested, NULL));
    EXPECT(0, pthread_join(id, NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    cpu_set_t all, some;
    pthread_t ids[MAX_THREADS];
    parse(argc, argv, 4, 1);
    EXPECT(0, sched_getaffinity(0, sizeof all, &all));
    int last = CPU_SETSIZE - 1, lowest = 0;
    while (!CPU_ISSET(last, &all))
        last--;
    while (!CPU_ISSET(lowest, &all))
        lowest++;
    CPU_ZERO(&first);
    CPU_SET(lowest, &first);
    CPU_ZERO(&some);
    CPU_SET(last, &some);
    EXPECT(0, setpriority(PRIO_PROCESS, 0, 5));
    EXPECT(0, sched_setaffinity(0, sizeof some, &some));
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, outer, &some));
    for (int i = 0; i < threads; i++)
        EXPECT(0, pthread_join(ids[i], NULL));
    return pass();
}
