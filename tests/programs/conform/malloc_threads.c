/* malloc, realloc and free from many threads, with blocks that are freed by other threads than their makers. */
#include "../harness.h"
#include <malloc.h>

enum { SLOTS = 64 };
struct block {
    uint32_t seed;
    uint32_t length;
    unsigned char data[];
};
static struct slot {
    pthread_mutex_t mutex;
    struct block *block;
} slots[SLOTS];

static void fill(struct block *b, uint32_t seed, uint32_t length)
{
    b->seed = seed;
    b->length = length;
    for (uint32_t i = 0; i < length; i++)
        b->data[i] = (unsigned char)next_random(&seed);
}

static long damaged(const struct block *b, uint32_t upto)
{
    uint32_t seed = b->seed;
    for (uint32_t i = 0; i < upto; i++)
        if (b->data[i] != (unsigned char)next_random(&seed))
            return 1;
    return 0;
}

static uint32_t random_length(uint32_t *state)
{
    uint32_t kind = next_random(state) % 16;
    return 1 + next_random(state) % (kind == 0 ? 200000 : kind < 4 ? 5000 : 200);
}

static long work(int self)
{
    long violations = 0;
    uint32_t state = (uint32_t)self * 977 + 3;
    for (long i = 0; i < iterations; i++) {
        uint32_t length = random_length(&state);
        struct block *mine = malloc(sizeof *mine + length);
        REQUIRE(mine && (uintptr_t)mine % _Alignof(max_align_t) == 0);
        REQUIRE(malloc_usable_size(mine) >= sizeof *mine + length);
        fill(mine, next_random(&state), length);

        /* Leave it for whoever comes next, and take what was there. */
        struct slot *s = &slots[next_random(&state) % SLOTS];
        pthread_mutex_lock(&s->mutex);
        struct block *other = s->block;
        s->block = mine;
        pthread_mutex_unlock(&s->mutex);
        if (!other)
            continue;
        uint32_t was = other->length, becomes = random_length(&state);
        violations += damaged(other, was);
        other = realloc(other, sizeof *other + becomes);
        REQUIRE(other);
        violations += damaged(other, was < becomes ? was : becomes);
        free(other);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 6, 500);
    for (int i = 0; i < SLOTS; i++)
        EXPECT(0, pthread_mutex_init(&slots[i].mutex, NULL));
    long violations = run_threads(threads, work);
    for (int i = 0; i < SLOTS; i++) {
        violations += slots[i].block && damaged(slots[i].block, slots[i].block->length);
        free(slots[i].block);
    }
    return verdict(violations, "a block was damaged");
}
