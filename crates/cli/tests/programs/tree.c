/* A tree that a function builds by calling itself; threads count in it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LEVELS = 14 };

struct node {
    struct node *left, *right;
    long key, visits[THREADS];
};

static struct node *root;

static struct node *build(int levels, long key)
{
    if (levels == 0)
        return NULL;
    struct node *node = malloc(sizeof *node);
    node->left = build(levels - 1, 2 * key);
    node->right = build(levels - 1, 2 * key + 1);
    node->key = key;
    for (int thread = 0; thread < THREADS; thread++)
        node->visits[thread] = 0;
    return node;
}

static long visit(struct node *node, int self)
{
    if (node == NULL)
        return 0;
    node->visits[self]++;
    return node->key % 7 + visit(node->left, self) + visit(node->right, self);
}

static void *work(void *argument)
{
    long sum = 0;
    for (int round = 0; round < 10; round++)
        sum += visit(root, (int)(long)argument);
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    root = build(LEVELS, 1);
    for (long self = 0; self < THREADS; self++)
        pthread_create(&threads[self], NULL, work, (void *)self);
    for (int self = 0; self < THREADS; self++) {
        void *result;
        pthread_join(threads[self], &result);
        sum += (long)result;
    }
    printf("%ld\n", sum);
    return 0;
}
