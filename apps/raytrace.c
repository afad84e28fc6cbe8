/* Ray tracing of many balls over a plane, with shadows and reflections.
 *
 * Main makes the scene and sorts the balls into a uniform grid; from then on all of that is only read, by all
 * threads. The picture is cut into tiles, which are dealt to the threads' queues in equal parts; a thread that has
 * done its own steals from others. The picture is a plain two-dimensional array, so that tiles of several threads
 * share each page. With -r 1 all threads count their rays in one number under a lock.
 */
#include "common.h"
#include "tasks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'n', "width and height of the picture in pixels", 96, 640, 8, 8192, 0},
    {'b', "number of balls", 1000, 60000, 1, 10000000, 0},
    {'t', "side of a tile in pixels", 8, 8, 1, 1024, 0},
    {'r', "1: each ray is counted under one lock", 0, 0, 0, 1, 0},
};
static struct app app = {"raytrace", "ray tracing by tiles with stealing", specs, 4, NULL, NULL};

enum { REFLECTIONS = 3, MAX_SIDE = 128 };

struct vector {
    double x, y, z;
};

struct ball {
    struct vector centre, colour;
    double radius, mirror; /* the part of the light that it reflects */
};

struct ray {
    struct vector from, along; /* of length 1 */
};

struct hit {
    double distance;
    long ball; /* -1: the plane y = 0 */
};

static long size, balls, tile;
static struct ball *ball;
static long side;             /* cells of the grid along an edge of the unit cube */
static long *cell_start;      /* balls of cell c: cell_ball[cell_start[c]] .. cell_ball[cell_start[c + 1] - 1] */
static long *cell_ball;
static uint32_t *picture;

static struct {
    pthread_mutex_t mutex;
    bool wanted;
    long rays;
} counted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const struct vector light = {-0.4, 2.0, -1.0};

static struct vector plus(struct vector a, double factor, struct vector b)
{
    return (struct vector){a.x + factor * b.x, a.y + factor * b.y, a.z + factor * b.z};
}

static double dot(struct vector a, struct vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector unit(struct vector a)
{
    return plus((struct vector){0, 0, 0}, 1 / sqrt(dot(a, a)), a);
}

static void meet_ball(const struct ray *r, long number, struct hit *nearest)
{
    struct vector to = plus(ball[number].centre, -1, r->from);
    double along = dot(to, r->along);
    double inside = ball[number].radius * ball[number].radius - dot(to, to) + along * along;
    if (inside < 0)
        return;
    double root = sqrt(inside), distance = along - root > 1e-9 ? along - root : along + root;
    /* Of two at the same distance the first counts, in whatever order the cells have them. */
    if (distance > 1e-9 && (distance < nearest->distance || (distance == nearest->distance && number < nearest->ball)))
        *nearest = (struct hit){distance, number};
}

static void meet_plane(const struct ray *r, struct hit *nearest)
{
    double distance = -r->from.y / r->along.y;
    if (r->along.y < 0 && distance > 1e-9 && distance < nearest->distance)
        *nearest = (struct hit){distance, -1};
}

/* The cell that holds a co-ordinate; those outside of the cube count as its outermost. */
static long cell_of(double x)
{
    long cell = (long)floor(x * (double)side);
    return cell < 0 ? 0 : cell >= side ? side - 1 : cell;
}

/* Where the ray is inside the unit cube: *in to *out. */
static bool clip(const double *from, const double *along, double *in, double *out)
{
    *in = 0;
    *out = INFINITY;
    for (int k = 0; k < 3; k++) {
        double a = (0 - from[k]) / along[k], b = (1 - from[k]) / along[k];
        *in = fmax(*in, fmin(a, b));
        *out = fmin(*out, fmax(a, b));
    }
    return *in < *out;
}

/* Walks from cell to cell along the ray until one has a ball that is hit inside of it. */
static void meet_grid(const struct ray *r, struct hit *nearest)
{
    double from[3] = {r->from.x, r->from.y, r->from.z}, along[3] = {r->along.x, r->along.y, r->along.z};
    double in, out, next[3], width[3];
    long at[3], step[3];
    if (!clip(from, along, &in, &out))
        return;
    for (int k = 0; k < 3; k++) {
        at[k] = cell_of(from[k] + in * along[k]);
        step[k] = along[k] > 0 ? 1 : -1;
        double border = (double)(at[k] + (along[k] > 0)) / (double)side;
        next[k] = along[k] != 0 ? (border - from[k]) / along[k] : INFINITY;
        width[k] = along[k] != 0 ? fabs(1 / ((double)side * along[k])) : INFINITY;
    }
    for (;;) {
        long c = (at[0] * side + at[1]) * side + at[2];
        for (long i = cell_start[c]; i < cell_start[c + 1]; i++)
            meet_ball(r, cell_ball[i], nearest);
        int k = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : (next[1] < next[2] ? 1 : 2);
        if (nearest->distance < next[k] - 1e-9)
            return;
        at[k] += step[k];
        if (at[k] < 0 || at[k] >= side)
            return;
        next[k] += width[k];
    }
}

static void meet_each(const struct ray *r, struct hit *nearest)
{
    for (long i = 0; i < balls; i++)
        meet_ball(r, i, nearest);
}

static struct hit first_hit(const struct ray *r)
{
    struct hit nearest = {INFINITY, -1};
    meet_plane(r, &nearest);
    meet_grid(r, &nearest);
    return nearest;
}

static bool in_shadow(struct vector place, struct vector to_light)
{
    struct hit nearest = {INFINITY, -1};
    struct ray r = {place, to_light};
    meet_grid(&r, &nearest);
    return isfinite(nearest.distance);
}

static struct vector trace(const struct ray *r, int reflections)
{
    struct hit h = first_hit(r);
    if (counted.wanted) {
        pthread_mutex_lock(&counted.mutex);
        counted.rays++;
        pthread_mutex_unlock(&counted.mutex);
    }
    if (!isfinite(h.distance))
        return (struct vector){0.3, 0.5, 0.6 + 0.3 * r->along.y};
    struct vector place = plus(r->from, h.distance, r->along), normal = {0, 1, 0};
    bool odd = ((long)floor(8 * place.x) + (long)floor(8 * place.z)) & 1;
    struct vector colour = odd ? (struct vector){0.8, 0.8, 0.8} : (struct vector){0.2, 0.2, 0.2};
    double mirror = 0.1;
    if (h.ball >= 0) {
        normal = unit(plus(place, -1, ball[h.ball].centre));
        colour = ball[h.ball].colour;
        mirror = ball[h.ball].mirror;
    }
    struct vector to_light = unit(plus(light, -1, place)), off = plus(place, 1e-6, normal);
    double bright = fmax(0, dot(normal, to_light));
    if (bright > 0 && in_shadow(off, to_light))
        bright = 0;
    struct vector seen = plus((struct vector){0, 0, 0}, (1 - mirror) * (0.15 + 0.85 * bright), colour);
    if (reflections == 0)
        return seen;
    struct ray reflected = {off, unit(plus(r->along, -2 * dot(r->along, normal), normal))};
    return plus(seen, mirror, trace(&reflected, reflections - 1));
}

static struct ray through_pixel(long x, long y)
{
    double right = ((double)x + 0.5) / (double)size - 0.5, up = 0.5 - ((double)y + 0.5) / (double)size;
    return (struct ray){{0.503, 0.6, -1.1}, unit((struct vector){right + 1e-9, up - 0.07, 1})};
}

static uint32_t channel(double value)
{
    return (uint32_t)(255 * fmin(1, fmax(0, value)) + 0.5);
}

static void work(int self)
{
    struct task task;
    while (tasks_take(self, &task)) {
        long across = (size + tile - 1) / tile, x0 = task.kind % across * tile, y0 = task.kind / across * tile;
        for (long y = y0; y < y0 + tile && y < size; y++)
            for (long x = x0; x < x0 + tile && x < size; x++) {
                struct ray r = through_pixel(x, y);
                struct vector c = trace(&r, REFLECTIONS);
                picture[y * size + x] = channel(c.x) << 16 | channel(c.y) << 8 | channel(c.z);
            }
    }
}

/* Calls `visit` with each cell that the box around a ball touches. */
static void each_cell(long number, void (*visit)(long cell, long number))
{
    const struct ball *b = &ball[number];
    for (long i = cell_of(b->centre.x - b->radius); i <= cell_of(b->centre.x + b->radius); i++)
        for (long j = cell_of(b->centre.y - b->radius); j <= cell_of(b->centre.y + b->radius); j++)
            for (long k = cell_of(b->centre.z - b->radius); k <= cell_of(b->centre.z + b->radius); k++)
                visit((i * side + j) * side + k, number);
}

static void count(long cell, long number)
{
    (void)number;
    cell_start[cell + 2]++;
}

static void place(long cell, long number)
{
    cell_ball[cell_start[cell + 1]++] = number;
}

static void make_scene(void)
{
    struct random r = {11};
    double typical = 0.4 / cbrt((double)balls);
    ball = must_alloc(sizeof *ball * (size_t)balls);
    for (long i = 0; i < balls; i++) {
        double radius = typical * (0.3 + 0.7 * random_unit(&r)), room = 1 - 2 * radius;
        double x = random_unit(&r), y = random_unit(&r), z = random_unit(&r);
        double red = random_unit(&r), green = random_unit(&r), blue = random_unit(&r);
        ball[i] = (struct ball){{radius + room * x, radius + room * y, radius + room * z}, {red, green, blue}, radius,
                                0.6 * random_unit(&r)};
    }
    side = (long)cbrt((double)balls) + 1;
    side = side > MAX_SIDE ? MAX_SIDE : side;
    size_t cells = (size_t)(side * side * side);
    cell_start = calloc(cells + 2, sizeof *cell_start);
    if (!cell_start)
        die("cannot allocate a grid of %zu cells", cells);
    for (long i = 0; i < balls; i++)
        each_cell(i, count);
    /* cell_start[c + 1] walks from the start to the end of cell c while its balls are filled in. */
    for (size_t c = 2; c < cells + 2; c++)
        cell_start[c] += cell_start[c - 1];
    cell_ball = must_alloc(sizeof *cell_ball * (size_t)(cell_start[cells + 1] + 1));
    for (long i = 0; i < balls; i++)
        each_cell(i, place);
}

/* Rays through some pixels meet first what they meet first among all balls. */
static void verify(void)
{
    struct random random = {3};
    bool same = true;
    for (int sample = 0; sample < 500; sample++) {
        long pixel = (long)(random_bits(&random) % (uint64_t)(size * size));
        struct ray r = through_pixel(pixel % size, pixel / size);
        struct hit by_grid = first_hit(&r), by_all = {INFINITY, -1};
        meet_plane(&r, &by_all);
        meet_each(&r, &by_all);
        same = same && by_grid.ball == by_all.ball && by_grid.distance == by_all.distance;
    }
    check(same, "rays meet the same with the grid and without it");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    size = specs[0].value;
    balls = specs[1].value;
    tile = specs[2].value;
    counted.wanted = specs[3].value;
    make_scene();
    picture = must_alloc(sizeof *picture * (size_t)(size * size));
    tasks_make();
    long across = (size + tile - 1) / tile, tiles = across * across;
    for (int self = 0; self < threads; self++) {
        long first, last;
        my_block(tiles, self, &first, &last);
        while (first < last--)
            tasks_put(self, &(struct task){.kind = last});
    }
    run_team(MAIN_WAITS, work);
    printf("result: raytrace %ld x %ld, %ld balls, %ld rays counted: %016lx\n", size, size, balls,
           counted.rays, (unsigned long)hash_bytes(HASH_START, picture, sizeof *picture * (size_t)(size * size)));
    if (self_check)
        verify();
    return 0;
}
