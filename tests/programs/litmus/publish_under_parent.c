/* A search tree with a lock in each node. A node is filled without any lock and published under the lock of its
 * parent; whoever comes by reads its contents under the node's own lock or none at all. This is right only if
 * releases are transitive over different locks. */
#include "../harness.h"

struct node {
    pthread_mutex_t mutex;
    uint32_t key;
    uint32_t complement; /* ~key: written before publication */
    struct node *child[2];
    char payload[200];
};
static struct node *root;

static struct node *new_node(uint32_t key)
{
    struct node *n = malloc(sizeof *n);
    pthread_mutex_init(&n->mutex, NULL);
    n->key = key;
    n->complement = ~key;
    n->child[0] = n->child[1] = NULL;
    memset(n->payload, (int)(key & 0xff), sizeof n->payload);
    return n;
}

static bool intact(const struct node *n)
{
    if (n->complement != ~n->key)
        return false;
    for (size_t i = 0; i < sizeof n->payload; i++)
        if ((unsigned char)n->payload[i] != (n->key & 0xff))
            return false;
    return true;
}

static long insert(uint32_t key)
{
    long violations = 0;
    struct node *at = root;
    for (;;) {
        violations += !intact(at);
        int side = key > at->key;
        pthread_mutex_lock(&at->mutex);
        struct node *next = at->child[side];
        if (!next)
            at->child[side] = new_node(key);
        pthread_mutex_unlock(&at->mutex);
        if (!next)
            return violations;
        at = next;
    }
}

static long work(int self)
{
    uint32_t state = (uint32_t)self * 7919u + 1;
    long violations = 0;
    for (long i = 0; i < iterations; i++)
        violations += insert(next_random(&state) * 2654435761u);
    return violations;
}

static long count(const struct node *n, uint64_t low, uint64_t high)
{
    if (!n)
        return 0;
    REQUIRE(n->key >= low && n->key <= high && intact(n));
    return 1 + count(n->child[0], low, n->key) + count(n->child[1], (uint64_t)n->key + 1, high);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    root = new_node(0x80000000u);
    long violations = run_threads(threads, work);
    EXPECT(1 + threads * iterations, count(root, 0, UINT32_MAX));
    return verdict(violations, "a published node was not complete");
}
