/* Programs with reductions, and with other things besides: -D with one of the names below. */
#include <sched.h>

static int flag, a[99];
static long count, n = 9;
static double sum;

static void reduce(void)
{
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += a[i];
}

#if defined LARGEST
static void work(void)
{
#pragma omp parallel for reduction(max : count)
    for (int i = 0; i < n; i++)
        count = a[i] > count ? a[i] : count;
}
#elif defined LOCAL
static void work(void)
{
    long s = 0;
#pragma omp parallel reduction(+ : s)
    s += n;
    count = s;
}
#elif defined AGAIN
static void work(void)
{
#pragma omp parallel
    for (int round = 0; round < n; round++) {
#pragma omp for reduction(+ : sum)
        for (int i = 0; i < n; i++)
            sum += a[i];
    }
}
#elif defined ATOMIC_UPDATES
static void work(void)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma omp atomic
        a[i % 7]++;
    }
}
#elif defined SPIN_LOCK
static void work(void)
{
#pragma omp parallel
    {
        while (!__sync_bool_compare_and_swap(&flag, 0, 1))
            ;
        count++;
        __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
    }
}
#elif defined SWAPPING_LOCK
static void work(void)
{
#pragma omp parallel
    {
        while (__sync_lock_test_and_set(&flag, 1))
            ;
        count++;
        __sync_lock_release(&flag);
    }
}
#elif defined FLUSH
static void work(void)
{
#pragma omp parallel
    {
        count = 1;
#pragma omp flush
        flag = 1;
    }
}
#elif defined STORE
static void work(void)
{
#pragma omp parallel
    __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
}
#elif defined OUTSIDE
static void work(void)
{
    __sync_fetch_and_add(&count, 1);
}
#elif defined STACK
struct node {
    struct node *next;
};
static struct node *head, node;

static void work(void)
{
#pragma omp parallel
    {
        struct node *old;
        do {
            old = __atomic_load_n(&head, __ATOMIC_RELAXED);
            node.next = old;
        } while (!__sync_bool_compare_and_swap(&head, old, &node));
    }
}
#elif defined POLL
static void work(void)
{
#pragma omp parallel
    for (;;) {
        int f;
#pragma omp atomic read
        f = flag;
        if (f)
            break;
    }
}
#elif defined POLL_COUNTING
static void work(void)
{
#pragma omp parallel
    {
        long spins = 0;
        while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
            spins++;
        count = spins;
    }
}
#elif defined POLL_YIELDING
static void work(void)
{
#pragma omp parallel
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        sched_yield();
}
#elif defined POLL_CALLING
__attribute__((noinline)) static int is_set(void)
{
    return __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
}

static void work(void)
{
#pragma omp parallel
    while (!is_set())
        ;
}
#elif defined POLL_POINTER
static void work(void)
{
    int *p = a + n;
#pragma omp parallel
    while (!__atomic_load_n(p, __ATOMIC_ACQUIRE))
        ;
}
#else
static void work(void) { }
#endif

int main(void)
{
    for (int i = 0; i < 3; i++) {
        reduce();
        work();
    }
    return (int)sum;
}
