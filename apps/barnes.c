/* Motion of bodies under gravity by the method of Barnes and Hut.
 *
 * In each step the threads put their bodies into one common tree of cubes, work out the centres of mass, then each
 * thread finds the forces on its bodies, taking a far-away cube as one body, and moves them. A cube is filled before
 * it is hung into its parent, under the parent's lock: who reads it later has never held the same lock as the one
 * who filled it, only locks in a chain. The form of the tree and the order of all sums depend on the positions
 * alone. Main makes the bodies and waits.
 *
 * Everybody reads the place and the mass of a body, only its owner its velocity and its acceleration. With -r 1 the
 * two groups of fields are in arrays of their own instead of side by side.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "number of bodies", 2048, 131072, 2, 10000000, 0},
    {'i', "time steps", 2, 2, 1, 1000000, 0},
    {'r', "1: fields that others read are apart from the rest", 0, 0, 0, 1, 0},
};
static struct app app = {"barnes", "gravity by a tree of cubes", specs, 3, NULL, NULL};

enum { LOCKS = 1024, CELL_BLOCK = 1024, MAX_DEPTH = 60 };

/* A cube is one body if its side is less than this part of its distance; below 1 / sqrt(3) no body ever attracts
 * itself through the cube it is in. */
static const double opening = 0.5;
static const double softening = 0.01;
static const double time_step = 0.01;

struct node {
    bool is_cell;
    double mass;
    double place[3]; /* of a body; centre of mass of a cell */
};

struct motion {
    double velocity[3];
    double acceleration[3];
};

struct body {
    struct node node;
    struct motion motion;
};

struct cell {
    struct node node;
    double centre[3]; /* of the cube */
    double half;      /* half its side */
    unsigned lock;    /* which of the locks guards `child` */
    struct node *child[8];
};

static long bodies, steps;
static char *nodes, *motions; /* of the first body */
static size_t next_node, next_motion; /* bytes from one body's to the next one's */
static struct cell *root;
static pthread_mutex_t locks[LOCKS];
static double extent[MAX_THREADS]; /* by thread: greatest distance of a co-ordinate from 0 */

static struct node *node_of(long body)
{
    return (struct node *)(nodes + (size_t)body * next_node);
}

static struct motion *motion_of(long body)
{
    return (struct motion *)(motions + (size_t)body * next_motion);
}

static void allocate_bodies(bool apart)
{
    if (apart) {
        next_node = sizeof(struct node);
        next_motion = sizeof(struct motion);
        nodes = must_alloc(next_node * (size_t)bodies);
        motions = must_alloc(next_motion * (size_t)bodies);
    } else {
        struct body *both = must_alloc(sizeof *both * (size_t)bodies);
        next_node = next_motion = sizeof *both;
        nodes = (char *)&both->node;
        motions = (char *)&both->motion;
    }
}

/* A thread's own supply of cells, used again in each step. */
struct supply {
    struct cell **block;
    long blocks, used;
    unsigned self;
};

static struct cell *new_cell(struct supply *s, const double *centre, double half)
{
    if (s->used == s->blocks * CELL_BLOCK) {
        s->block = realloc(s->block, sizeof *s->block * (size_t)(s->blocks + 1));
        if (!s->block)
            die("out of memory for cells");
        s->block[s->blocks++] = must_alloc(sizeof(struct cell) * CELL_BLOCK);
    }
    struct cell *c = &s->block[s->used / CELL_BLOCK][s->used % CELL_BLOCK];
    memset(c, 0, sizeof *c);
    c->node.is_cell = true;
    memcpy(c->centre, centre, sizeof c->centre);
    c->half = half;
    c->lock = (unsigned)(s->used * 31 + s->self * 17) % LOCKS;
    s->used++;
    return c;
}

static int octant(const struct cell *c, const double *place)
{
    return (place[0] >= c->centre[0]) | (place[1] >= c->centre[1]) << 1 | (place[2] >= c->centre[2]) << 2;
}

static struct cell *new_child(struct supply *s, const struct cell *parent, int which)
{
    double centre[3];
    for (int k = 0; k < 3; k++)
        centre[k] = parent->centre[k] + (which >> k & 1 ? 0.5 : -0.5) * parent->half;
    return new_cell(s, centre, parent->half / 2);
}

/* A new cube, the child `which` of `parent`, with the two bodies in it, in smaller cubes if need be. */
static struct node *separate(struct supply *s, const struct cell *parent, int which, struct node *a, struct node *b)
{
    struct cell *top = new_child(s, parent, which), *at = top;
    for (int depth = 0; octant(at, a->place) == octant(at, b->place); depth++) {
        if (depth > MAX_DEPTH)
            die("two bodies are in the same place");
        int both = octant(at, a->place);
        struct cell *inner = new_child(s, at, both);
        at->child[both] = &inner->node;
        at = inner;
    }
    at->child[octant(at, a->place)] = a;
    at->child[octant(at, b->place)] = b;
    return &top->node;
}

static void insert(struct supply *s, struct node *new)
{
    struct cell *at = root;
    while (at) {
        int which = octant(at, new->place);
        struct cell *next = NULL;
        pthread_mutex_lock(&locks[at->lock]);
        struct node *there = at->child[which];
        if (!there)
            at->child[which] = new;
        else if (there->is_cell)
            next = (struct cell *)there;
        else
            at->child[which] = separate(s, at, which, there, new);
        pthread_mutex_unlock(&locks[at->lock]);
        at = next;
    }
}

static void find_centre(struct cell *c)
{
    double mass = 0, place[3] = {0, 0, 0};
    for (int i = 0; i < 8; i++) {
        const struct node *n = c->child[i];
        if (!n)
            continue;
        mass += n->mass;
        for (int k = 0; k < 3; k++)
            place[k] += n->mass * n->place[k];
    }
    c->node.mass = mass;
    for (int k = 0; k < 3; k++)
        c->node.place[k] = place[k] / mass;
}

/* Centres of mass of all cells below and at n, children first. */
static void find_centres(struct node *n)
{
    if (!n || !n->is_cell)
        return;
    struct cell *c = (struct cell *)n;
    for (int i = 0; i < 8; i++)
        find_centres(c->child[i]);
    find_centre(c);
}

/* The same for the cells `depth` cubes below n, which are dealt to the threads; `turn` counts them. */
static void find_my_centres(struct node *n, int depth, int self, int *turn)
{
    if (!n || !n->is_cell)
        return;
    if (depth == 0) {
        if ((*turn)++ % threads == self)
            find_centres(n);
        return;
    }
    for (int i = 0; i < 8; i++)
        find_my_centres(((struct cell *)n)->child[i], depth - 1, self, turn);
}

/* And for the cells that are less than `depth` cubes below n. */
static void find_centres_above(struct node *n, int depth)
{
    if (!n || !n->is_cell || depth == 0)
        return;
    struct cell *c = (struct cell *)n;
    for (int i = 0; i < 8; i++)
        find_centres_above(c->child[i], depth - 1);
    find_centre(c);
}

static void attract(double *acceleration, const struct node *n, const double *d, double square)
{
    double r2 = square + softening * softening, r = sqrt(r2);
    for (int k = 0; k < 3; k++)
        acceleration[k] += n->mass * d[k] / (r2 * r);
}

static void find_force(double *acceleration, const struct node *b, const struct node *n, double side)
{
    double d[3], square = 0;
    if (n == b)
        return;
    for (int k = 0; k < 3; k++) {
        d[k] = n->place[k] - b->place[k];
        square += d[k] * d[k];
    }
    if (!n->is_cell || side * side < opening * opening * square) {
        attract(acceleration, n, d, square);
        return;
    }
    const struct cell *c = (const struct cell *)n;
    for (int i = 0; i < 8; i++)
        if (c->child[i])
            find_force(acceleration, b, c->child[i], side / 2);
}

static void move(struct node *b, struct motion *m)
{
    for (int k = 0; k < 3; k++) {
        m->velocity[k] += time_step * m->acceleration[k];
        b->place[k] += time_step * m->velocity[k];
    }
}

static void make_root(struct supply *s)
{
    double half = 0, origin[3] = {0, 0, 0};
    for (int i = 0; i < threads; i++)
        half = fmax(half, extent[i]);
    root = new_cell(s, origin, half * 1.001);
}

static void work(int self)
{
    enum { SHARED_DEPTH = 3 };
    long first, last;
    struct supply s = {NULL, 0, 0, (unsigned)self};
    my_block(bodies, self, &first, &last);
    for (long step = 0; step < steps; step++) {
        s.used = 0;
        double far = 0;
        for (long i = first; i < last; i++)
            for (int k = 0; k < 3; k++)
                far = fmax(far, fabs(node_of(i)->place[k]));
        extent[self] = far;
        team_barrier();
        if (self == 0)
            make_root(&s);
        team_barrier();
        for (long i = first; i < last; i++)
            insert(&s, node_of(i));
        team_barrier();
        int turn = 0;
        find_my_centres(&root->node, SHARED_DEPTH, self, &turn);
        team_barrier();
        if (self == 0)
            find_centres_above(&root->node, SHARED_DEPTH);
        team_barrier();
        for (long i = first; i < last; i++) {
            double *acceleration = motion_of(i)->acceleration;
            memset(acceleration, 0, sizeof motion_of(i)->acceleration);
            find_force(acceleration, node_of(i), &root->node, 2 * root->half);
        }
        team_barrier();
        /* The bodies of the last step stay where their forces were found, for the check. */
        for (long i = first; i < last && step < steps - 1; i++)
            move(node_of(i), motion_of(i));
    }
}

static int compare_codes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Bodies in a ball, denser towards the middle, in the order of a space-filling curve (so that the bodies of a thread
 * are neighbours). */
static void initialise(void)
{
    struct random r = {131072};
    double(*place)[3] = must_alloc(sizeof *place * (size_t)bodies);
    uint64_t(*code)[2] = must_alloc(sizeof *code * (size_t)bodies);
    for (long i = 0; i < bodies; i++) {
        double square;
        do {
            square = 0;
            for (int k = 0; k < 3; k++) {
                place[i][k] = 2 * random_unit(&r) - 1;
                square += place[i][k] * place[i][k];
            }
        } while (square > 1);
        code[i][0] = 0;
        code[i][1] = (uint64_t)i;
        for (int k = 0; k < 3; k++) {
            place[i][k] *= square;
            uint64_t bits = (uint64_t)((place[i][k] + 1) * 1048575);
            for (int bit = 0; bit < 21; bit++)
                code[i][0] |= (bits >> bit & 1) << (3 * bit + k);
        }
    }
    qsort(code, (size_t)bodies, sizeof *code, compare_codes);
    for (long i = 0; i < bodies; i++) {
        struct node *b = node_of(i);
        struct motion *m = motion_of(i);
        memset(b, 0, sizeof *b);
        memset(m, 0, sizeof *m);
        memcpy(b->place, place[code[i][1]], sizeof b->place);
        b->mass = 1.0 / (double)bodies;
        /* Turning about the third axis. */
        m->velocity[0] = -0.5 * b->place[1];
        m->velocity[1] = 0.5 * b->place[0];
    }
    free(place);
    free(code);
}

/* Forces on some bodies by direct summation, and the mass of the tree. */
static void verify(void)
{
    double difference = 0, size = 0;
    for (long i = 0; i < bodies; i += 1 + bodies / 100) {
        double direct[3] = {0, 0, 0};
        for (long j = 0; j < bodies; j++) {
            double d[3], square = 0;
            if (j == i)
                continue;
            for (int k = 0; k < 3; k++) {
                d[k] = node_of(j)->place[k] - node_of(i)->place[k];
                square += d[k] * d[k];
            }
            attract(direct, node_of(j), d, square);
        }
        for (int k = 0; k < 3; k++) {
            double error = direct[k] - motion_of(i)->acceleration[k];
            difference += error * error;
            size += direct[k] * direct[k];
        }
    }
    check(fabs(root->node.mass - 1) < 1e-9, "all bodies are in the tree");
    check(sqrt(difference / size) < 0.02, "forces within 2 % of direct summation");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    bodies = specs[0].value;
    steps = specs[1].value;
    allocate_bodies(specs[2].value);
    initialise();
    for (int i = 0; i < LOCKS; i++) {
        int error = pthread_mutex_init(&locks[i], NULL);
        if (error)
            die("pthread_mutex_init gave %d", error);
    }
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    for (long i = 0; i < bodies; i++) {
        hash = hash_bytes(hash, node_of(i)->place, sizeof node_of(i)->place);
        hash = hash_bytes(hash, motion_of(i)->acceleration, sizeof motion_of(i)->acceleration);
    }
    printf("result: barnes %ld bodies, %ld steps: %016lx\n", bodies, steps, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
