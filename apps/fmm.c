/* Motion of bodies in a plane under gravity, by the adaptive fast multipole method of Carrier, Greengard and Rokhlin.
 *
 * In each step the threads sort the bodies along a space-filling curve; thread 0 divides the square into boxes until none
 * has many bodies; then the series for the field of each box are added up from the leaves to the root, those for the field
 * of what is far from a box are passed down from the root to the leaves, level by level, and what is near to a leaf is
 * summed directly. Threads own contiguous blocks of the boxes of each level, and of the leaves. The boxes and the order of
 * all sums depend on the places alone. Threads make the bodies of their blocks themselves, or with -o 1 main makes all of
 * them; then main waits.
 */
#include "fmmlib.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "number of bodies", 2048, 65536, 2, 10000000, 0},
    {'i', "time steps", 2, 10, 1, 1000000, 0},
    {'o', "1: main initialises everything", 0, 0, 0, 1, 0},
};
static struct app app = {"fmm", "gravity in a plane by the fast multipole method", specs, 3, NULL, NULL};

/* Bodies that a box may have without being divided; levels below the root; boxes near to one. */
enum { LEAF = 24, DEPTH = 26, NEAR = 9 };

static const double time_step = 0.001;

struct body {
    number place, velocity, acceleration;
    double mass;
};

/* A body's place along the curve. */
struct key {
    uint64_t code;
    long body;
};

/* A square, of which there are 4^level; boxes without bodies are left out. */
struct box {
    number centre;
    uint32_t x, y; /* its corner in units of the smallest boxes */
    int level;
    int children;        /* 0 for a leaf */
    long parent, child;  /* numbers of boxes, the latter of the first child */
    long first, last;    /* its bodies: sorted[first] ... sorted[last - 1] */
};

/* What the owner of a box works out. */
struct series {
    number outer[TERMS]; /* field of its bodies */
    number inner[TERMS]; /* field of what is far from it */
    long near[NEAR];     /* boxes of its level, and leaves of levels above, that touch it; itself too */
    int nears;
};

static long bodies, steps;
static bool one_initialises;
static struct body *body;
static struct key *keys, *sorted; /* sorted within each thread's block, and as a whole */
static struct box *boxes;         /* level by level, along the curve */
static struct series *series;
static long level_begin[DEPTH + 2];
static int levels;
static double half; /* of the side of the root */
static double extent[MAX_THREADS]; /* by thread: greatest distance of a co-ordinate from 0 */

/* The bits of a number, with a 0 before each. */
static uint64_t spread(uint32_t bits)
{
    uint64_t wide = bits;
    wide = (wide | wide << 16) & 0x0000ffff0000ffff;
    wide = (wide | wide << 8) & 0x00ff00ff00ff00ff;
    wide = (wide | wide << 4) & 0x0f0f0f0f0f0f0f0f;
    wide = (wide | wide << 2) & 0x3333333333333333;
    return (wide | wide << 1) & 0x5555555555555555;
}

static uint64_t code_of(number place)
{
    const double unit = (double)(1L << DEPTH) / (2 * half);
    return spread((uint32_t)((creal(place) + half) * unit)) | spread((uint32_t)((cimag(place) + half) * unit)) << 1;
}

static int compare(const void *a, const void *b)
{
    const struct key *one = a, *other = b;
    if (one->code != other->code)
        return one->code < other->code ? -1 : 1;
    return (one->body > other->body) - (one->body < other->body);
}

/* How many of the ascending keys first .. last - 1 come before `key`. */
static long before(const struct key *key, long first, long last)
{
    long begin = first;
    while (first < last) {
        long middle = first + (last - first) / 2;
        if (compare(&keys[middle], key) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return first - begin;
}

/* Each thread sorts its block, and then finds the place of each of its bodies among those of the others. */
static void sort_bodies(int self, long first, long last)
{
    for (long i = first; i < last; i++)
        keys[i] = (struct key){code_of(body[i].place), i};
    qsort(keys + first, (size_t)(last - first), sizeof *keys, compare);
    team_barrier();
    for (long i = first; i < last; i++) {
        long rank = i - first;
        for (int other = 0; other < threads; other++) {
            long begin, end;
            my_block(bodies, other, &begin, &end);
            if (other != self)
                rank += before(&keys[i], begin, end);
        }
        sorted[rank] = keys[i];
    }
}

/* The first of the sorted bodies first .. last - 1 whose code is not below `code`, or `last`. */
static long find(uint64_t code, long first, long last)
{
    while (first < last) {
        long middle = first + (last - first) / 2;
        if (sorted[middle].code < code)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

/* Adds the box at a level that has the sorted bodies first .. last - 1. */
static void add_box(long number_of, long parent, int level, long first, long last)
{
    uint64_t code = sorted[first].code >> 2 * (DEPTH - level) << 2 * (DEPTH - level);
    uint32_t x = 0, y = 0;
    for (int bit = 0; bit < DEPTH; bit++) {
        x |= (uint32_t)(code >> 2 * bit & 1) << bit;
        y |= (uint32_t)(code >> (2 * bit + 1) & 1) << bit;
    }
    double unit = 2 * half / (double)(1L << DEPTH), middle = (double)(1L << (DEPTH - level)) / 2;
    number centre = CMPLX((x + middle) * unit - half, (y + middle) * unit - half);
    boxes[number_of] = (struct box){centre, x, y, level, 0, parent, 0, first, last};
}

/* Divides the square into boxes, level by level. */
static void make_boxes(void)
{
    long count = 1;
    add_box(0, 0, 0, 0, bodies);
    level_begin[0] = 0;
    level_begin[1] = 1;
    for (levels = 1; levels <= DEPTH; levels++) {
        for (long b = level_begin[levels - 1]; b < level_begin[levels]; b++) {
            long first = boxes[b].first, last = boxes[b].last;
            if (last - first <= LEAF)
                continue;
            boxes[b].child = count;
            while (first < last) {
                uint64_t quarter = sorted[first].code >> 2 * (DEPTH - levels);
                long end = find((quarter + 1) << 2 * (DEPTH - levels), first, last);
                add_box(count++, b, levels, first, end);
                first = end;
            }
            boxes[b].children = (int)(count - boxes[b].child);
        }
        level_begin[levels + 1] = count;
        if (count == level_begin[levels])
            break;
    }
}

/* True if two boxes have a point in common, be it at their edges. */
static bool touch(const struct box *a, const struct box *b)
{
    uint32_t side_a = 1U << (DEPTH - a->level), side_b = 1U << (DEPTH - b->level);
    return a->x <= b->x + side_b && b->x <= a->x + side_a && a->y <= b->y + side_b && b->y <= a->y + side_a;
}

static void outer_of_bodies(number *outer, const struct box *box)
{
    for (long i = box->first; i < box->last; i++) {
        const struct body *one = &body[sorted[i].body];
        add_to_outer(outer, one->mass, one->place - box->centre);
    }
}

static void inner_of_bodies(number *inner, const struct box *source, number centre)
{
    for (long i = source->first; i < source->last; i++) {
        const struct body *one = &body[sorted[i].body];
        add_to_inner(inner, one->mass, one->place - centre);
    }
}

/* The outer series of a box: of its bodies, or of its children. */
static void upward(long b)
{
    const struct box *box = &boxes[b];
    memset(series[b].outer, 0, sizeof series[b].outer);
    if (box->children == 0)
        outer_of_bodies(series[b].outer, box);
    for (long c = box->child; c < box->child + box->children; c++)
        shift_outer(series[b].outer, series[c].outer, boxes[c].centre - box->centre);
}

/* A box, or a leaf of a level above, that touches the parent of b: near to b if it touches b as well, else its field is
 * in the inner series of b. */
static void sort_in(long b, long other)
{
    struct series *own = &series[b];
    if (touch(&boxes[b], &boxes[other]))
        own->near[own->nears++] = other;
    else if (boxes[other].level < boxes[b].level)
        inner_of_bodies(own->inner, &boxes[other], boxes[b].centre);
    else
        outer_to_inner(own->inner, series[other].outer, boxes[b].centre - boxes[other].centre);
}

/* The inner series of a box that is not the root, and what is near to it, given those of its parent. */
static void downward(long b)
{
    const struct box *box = &boxes[b];
    const struct series *above = &series[box->parent];
    memset(series[b].inner, 0, sizeof series[b].inner);
    series[b].nears = 0;
    shift_inner(series[b].inner, above->inner, box->centre - boxes[box->parent].centre);
    for (int i = 0; i < above->nears; i++) {
        const struct box *near = &boxes[above->near[i]];
        if (near->children == 0)
            sort_in(b, above->near[i]);
        for (long c = near->child; c < near->child + near->children; c++)
            sort_in(b, c);
    }
}

static number field_of_bodies(const struct box *source, const struct body *at)
{
    number sum = 0;
    for (long i = source->first; i < source->last; i++) {
        const struct body *one = &body[sorted[i].body];
        if (one != at)
            sum += one->mass * inverse(at->place - one->place);
    }
    return sum;
}

/* The field at a body in a leaf of what is in box b, of which no larger box is far from the leaf. */
static number field_near(const struct box *leaf, const struct body *at, long b)
{
    const struct box *box = &boxes[b];
    if (!touch(leaf, box))
        return outer_at(series[b].outer, at->place - box->centre);
    if (box->children == 0)
        return field_of_bodies(box, at);
    number sum = 0;
    for (long c = box->child; c < box->child + box->children; c++)
        sum += field_near(leaf, at, c);
    return sum;
}

static void accelerate(long b)
{
    const struct box *leaf = &boxes[b];
    for (long i = leaf->first; i < leaf->last; i++) {
        struct body *at = &body[sorted[i].body];
        number field = inner_at(series[b].inner, at->place - leaf->centre);
        for (int j = 0; j < series[b].nears; j++)
            field += field_near(leaf, at, series[b].near[j]);
        at->acceleration = -conj(field);
    }
}

/* Makes the bodies first .. last - 1. They are numbered along the curve, in a disc that is denser towards the middle. */
static void initialise(long first, long last)
{
    const uint64_t cells = 1UL << 48;
    for (long i = first; i < last; i++) {
        struct random r = {(uint64_t)i * 2 + 1};
        random_bits(&r);
        double along = ((double)i + random_unit(&r)) / (double)bodies;
        uint64_t cell = (uint64_t)(along * (double)cells);
        double x = 0, y = 0, part = 1;
        for (int bit = 46; bit >= 0; bit -= 2) {
            x += (cell >> bit & 1 ? 0.5 : -0.5) * part;
            y += (cell >> (bit + 1) & 1 ? 0.5 : -0.5) * part;
            part /= 2;
        }
        /* From the square to the disc, along the radii. */
        double edge = fmax(fabs(x), fabs(y)), radius = sqrt(x * x + y * y);
        body[i].place = CMPLX(x, y) * (edge * edge / radius);
        body[i].velocity = CMPLX(0, 0.5) * body[i].place;
        body[i].acceleration = 0;
        body[i].mass = 1 / (double)bodies;
    }
}

static void measure(int self, long first, long last)
{
    double far = 0;
    for (long i = first; i < last; i++)
        far = fmax(far, fmax(fabs(creal(body[i].place)), fabs(cimag(body[i].place))));
    extent[self] = far;
    team_barrier();
    if (self == 0) {
        half = 0;
        for (int i = 0; i < threads; i++)
            half = fmax(half, extent[i] * 1.001);
    }
    team_barrier();
}

/* Series of all boxes, those of a level at a time. */
static void work_out_series(int self)
{
    long first, last;
    for (int level = levels - 1; level >= 0; level--) {
        my_block(level_begin[level + 1] - level_begin[level], self, &first, &last);
        for (long b = level_begin[level] + first; b < level_begin[level] + last; b++)
            upward(b);
        team_barrier();
    }
    if (self == 0) {
        /* Nothing is far from the root. */
        memset(series[0].inner, 0, sizeof series[0].inner);
        series[0].near[0] = 0;
        series[0].nears = 1;
    }
    team_barrier();
    for (int level = 1; level < levels; level++) {
        my_block(level_begin[level + 1] - level_begin[level], self, &first, &last);
        for (long b = level_begin[level] + first; b < level_begin[level] + last; b++)
            downward(b);
        team_barrier();
    }
}

static void work(int self)
{
    long first, last;
    my_block(bodies, self, &first, &last);
    if (!one_initialises)
        initialise(first, last);
    for (long step = 0; step < steps; step++) {
        measure(self, first, last);
        sort_bodies(self, first, last);
        team_barrier();
        if (self == 0)
            make_boxes();
        team_barrier();
        work_out_series(self);
        for (long b = 0; b < level_begin[levels]; b++)
            if (boxes[b].children == 0 && boxes[b].first >= first && boxes[b].first < last)
                accelerate(b);
        team_barrier();
        /* The bodies of the last step stay where their forces were found, for the check. */
        for (long i = first; i < last && step < steps - 1; i++) {
            body[i].velocity += time_step * body[i].acceleration;
            body[i].place += time_step * body[i].velocity;
        }
    }
}

/* Accelerations of some bodies by direct summation, and the mass at the root. */
static void verify(void)
{
    double difference = 0, size = 0;
    for (long i = 0; i < bodies; i += 1 + bodies / 200) {
        number direct = 0;
        for (long j = 0; j < bodies; j++)
            if (j != i)
                direct += body[j].mass * inverse(body[i].place - body[j].place);
        double error = cabs(-conj(direct) - body[i].acceleration);
        difference += error * error;
        size += creal(direct) * creal(direct) + cimag(direct) * cimag(direct);
    }
    check(fabs(creal(series[0].outer[0]) - 1) < 1e-9, "all bodies are in the root");
    check(sqrt(difference / size) < 1e-6, "accelerations equal those of direct summation");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    bodies = specs[0].value;
    steps = specs[1].value;
    one_initialises = specs[2].value;
    body = must_alloc(sizeof *body * (size_t)bodies);
    keys = must_alloc(sizeof *keys * (size_t)bodies);
    sorted = must_alloc(sizeof *sorted * (size_t)bodies);
    /* No leaf is empty, and what is divided at a level has more than LEAF bodies; few of these boxes are ever touched. */
    size_t most_boxes = (size_t)(bodies + bodies / LEAF * DEPTH + 1);
    boxes = must_alloc(sizeof *boxes * most_boxes);
    series = must_alloc(sizeof *series * most_boxes);
    prepare_series();
    if (one_initialises)
        initialise(0, bodies);
    run_team(MAIN_WAITS, work);
    uint64_t hash = HASH_START;
    for (long i = 0; i < bodies; i++) {
        hash = hash_bytes(hash, &body[i].place, sizeof body[i].place);
        hash = hash_bytes(hash, &body[i].acceleration, sizeof body[i].acceleration);
    }
    printf("result: fmm %ld bodies, %ld steps: %016lx\n", bodies, steps, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
