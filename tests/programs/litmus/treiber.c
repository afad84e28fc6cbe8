/* Treiber's lock-free stack: each node is pushed once and popped once; nodes are not reused, so ABA can't occur. */
#include "../harness.h"
#include <stdatomic.h>

struct node {
    struct node *next;
    long value;
    atomic_int popped;
};
static _Atomic(struct node *) top;
static long popped_sum[MAX_THREADS];

static void push(struct node *n)
{
    struct node *old = atomic_load(&top);
    do
        n->next = old;
    while (!atomic_compare_exchange_weak(&top, &old, n));
}

static struct node *pop(void)
{
    struct node *old = atomic_load(&top);
    while (old && !atomic_compare_exchange_weak(&top, &old, old->next))
        ;
    return old;
}

static long work(int self)
{
    long violations = 0;
    for (long i = 0; i < iterations; i++) {
        struct node *n = malloc(sizeof *n);
        n->value = i * threads + self;
        atomic_init(&n->popped, 0);
        push(n);
        /* Every thread pops only after a push of its own, so the stack is never empty here. */
        struct node *got = pop();
        if (!got) {
            violations++;
            continue;
        }
        violations += atomic_exchange(&got->popped, 1) != 0;
        popped_sum[self] += got->value;
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    long violations = run_threads(threads, work), sum = 0, all = threads * iterations;
    for (int i = 0; i < threads; i++)
        sum += popped_sum[i];
    REQUIRE(atomic_load(&top) == NULL);
    EXPECT(all * (all - 1) / 2, sum);
    return verdict(violations, "a node was lost or popped twice");
}
