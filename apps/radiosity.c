/* Light between the walls of a room and the boxes in it, by hierarchical radiosity.
 *
 * A pair of surfaces that see each other well is divided into smaller pieces, the others are linked: tasks, which
 * make further tasks. Then light goes along the links a few times, a task for each surface. Each thread has a queue
 * of tasks with a lock of its own, and steals from the others when it is empty. Each piece has a lock, too, for its
 * links and its division. Which pieces are linked depends on their places only, and light is added up in whole
 * numbers: the result does not depend on who has done what.
 */
#include "common.h"
#include "tasks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct option_spec specs[] = {
    {'b', "boxes in the room", 2, 8, 0, 100, 0},
    {'a', "light reaches a piece well enough from one that fills 1 / N of its view", 20, 150, 2, 1000000, 0},
    {'i', "times that light is passed on", 4, 6, 1, 1000, 0},
};
static struct app app = {"radiosity", "hierarchical radiosity with stealing of tasks", specs, 3, NULL, NULL};

enum { MAX_DEPTH = 5, RAYS = 8 };
enum kind { REFINE, PASS_ON };

struct vector {
    double x, y, z;
};

/* A rectangle, or a quarter of one. */
struct piece {
    pthread_mutex_t mutex; /* guards `child` and `link` */
    struct piece *child;   /* four, or none */
    struct link *link;     /* pieces that light comes from */
    struct vector corner, u, v, normal;
    double area, given;    /* given: light of its own, for each unit of area */
    int depth, surface;
    int64_t light[2];      /* for each unit of area, before and after a pass, in units of 2^-32 */
};

struct link {
    struct link *next;
    const struct piece *from;
    double share; /* of the view of the piece */
};

static long boxes, passes;
static double least_share;
static struct piece *surface;
static int surfaces;
static int pass; /* light[pass] is known */

static const double reflects = 0.6;

static int64_t units(double light)
{
    return llrint(light * 4294967296.0);
}

static struct vector plus(struct vector a, double factor, struct vector b)
{
    return (struct vector){a.x + factor * b.x, a.y + factor * b.y, a.z + factor * b.z};
}

static double dot(struct vector a, struct vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector across(struct vector a, struct vector b)
{
    return (struct vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static struct vector place(const struct piece *p, double s, double t)
{
    return plus(plus(p->corner, s, p->u), t, p->v);
}

/* Whether the line from a to b meets the surface between its ends. */
static bool hides(const struct piece *s, struct vector a, struct vector b)
{
    struct vector to_a = plus(a, -1, s->corner), to_b = plus(b, -1, s->corner);
    double before = dot(to_a, s->normal), behind = dot(to_b, s->normal);
    if (before * behind >= 0)
        return false;
    struct vector at = plus(to_a, before / (before - behind), plus(b, -1, a));
    double i = dot(at, s->u) / dot(s->u, s->u), j = dot(at, s->v) / dot(s->v, s->v);
    return i > 0 && i < 1 && j > 0 && j < 1;
}

static bool is_clear(const struct piece *p, const struct piece *q, struct vector a, struct vector b)
{
    for (int i = 0; i < surfaces; i++)
        if (i != p->surface && i != q->surface && hides(&surface[i], a, b))
            return false;
    return true;
}

/* The part of p's view that q fills: that of a disc of q's area, times the part of some lines that nothing hides. */
static double share_of_view(const struct piece *p, const struct piece *q)
{
    struct vector from = place(p, 0.5, 0.5), to = plus(place(q, 0.5, 0.5), -1, from);
    double square = dot(to, to), here = dot(to, p->normal), there = -dot(to, q->normal);
    if (here <= 0 || there <= 0)
        return 0;
    double share = here * there / square * q->area / (acos(-1.0) * square + q->area);
    if (share < least_share / 16)
        return 0;
    int clear = 0;
    struct random r = {(uint64_t)(1e6 * (from.x + 3 * from.y + 7 * from.z)) * 2 + 1};
    for (int i = 0; i < RAYS; i++) {
        double s[4];
        for (int k = 0; k < 4; k++)
            s[k] = random_unit(&r);
        clear += is_clear(p, q, place(p, s[0], s[1]), place(q, s[2], s[3]));
    }
    return share * clear / RAYS;
}

static void shape(struct piece *p, struct vector corner, struct vector u, struct vector v)
{
    struct vector n = across(u, v);
    double area = sqrt(dot(n, n));
    p->corner = corner;
    p->u = u;
    p->v = v;
    p->normal = plus((struct vector){0, 0, 0}, 1 / area, n);
    p->area = area;
    pthread_mutex_init(&p->mutex, NULL);
}

/* The quarters of a piece, which come into being when they are asked for. */
static struct piece *quarters(struct piece *p)
{
    pthread_mutex_lock(&p->mutex);
    if (!p->child) {
        struct vector none = {0, 0, 0}, u = plus(none, 0.5, p->u), v = plus(none, 0.5, p->v);
        struct piece *four = calloc(4, sizeof *four);
        if (!four)
            die("out of memory for pieces");
        for (int k = 0; k < 4; k++) {
            shape(&four[k], place(p, 0.5 * (k & 1), 0.5 * (k >> 1)), u, v);
            four[k].given = p->given;
            four[k].light[0] = p->light[0];
            four[k].depth = p->depth + 1;
            four[k].surface = p->surface;
        }
        p->child = four;
    }
    struct piece *child = p->child;
    pthread_mutex_unlock(&p->mutex);
    return child;
}

static void add_link(struct piece *p, const struct piece *q, double share)
{
    struct link *l = must_alloc(sizeof *l);
    *l = (struct link){.from = q, .share = share};
    pthread_mutex_lock(&p->mutex);
    l->next = p->link;
    p->link = l;
    pthread_mutex_unlock(&p->mutex);
}

/* Links p to q, or makes tasks for the quarters of the greater one. */
static void refine(int self, struct piece *p, struct piece *q)
{
    double share = share_of_view(p, q);
    if (share == 0)
        return;
    struct piece *greater = p->area > q->area ? p : q;
    if (share < least_share || greater->depth == MAX_DEPTH) {
        add_link(p, q, share);
        return;
    }
    struct piece *four = quarters(greater);
    for (int k = 0; k < 4; k++)
        tasks_put(self, &(struct task){REFINE, greater == p ? &four[k] : p, greater == p ? q : &four[k]});
}

/* Light that comes to p along its links and those of the pieces that it is part of, which is `from_above`; the mean of
 * its quarters is what p gives in the next pass. */
static int64_t pass_on(struct piece *p, int64_t from_above)
{
    int64_t light = from_above;
    for (const struct link *l = p->link; l; l = l->next)
        light += llrint(reflects * l->share * (double)l->from->light[pass]);
    if (p->child) {
        int64_t sum = 0;
        for (int k = 0; k < 4; k++)
            sum += pass_on(&p->child[k], light);
        p->light[!pass] = sum / 4;
    } else
        p->light[!pass] = light + units(p->given);
    return p->light[!pass];
}

static void work(int self)
{
    struct task t;
    for (long round = 0; round <= passes; round++) {
        if (round > 0)
            for (int i = self; i < surfaces; i += threads)
                tasks_put(self, &(struct task){PASS_ON, &surface[i], NULL});
        team_barrier();
        while (tasks_take(self, &t))
            if (t.kind == REFINE)
                refine(self, t.a, t.b);
            else
                pass_on(t.a, 0);
        team_barrier();
        if (self == 0) {
            tasks_again();
            pass = round > 0 ? !pass : pass;
        }
        team_barrier();
    }
}

static void add_surface(struct vector corner, struct vector u, struct vector v, double given)
{
    struct piece *p = &surface[surfaces];
    shape(p, corner, u, v);
    p->given = given;
    p->light[0] = units(given);
    p->surface = surfaces++;
}

/* The six sides of a box, seen from outside, or from inside if it is the room. */
static void add_box(struct vector low, struct vector size, bool room)
{
    struct vector x = {size.x, 0, 0}, y = {0, size.y, 0}, z = {0, 0, size.z};
    struct vector side[3][2] = {{x, y}, {y, z}, {z, x}}, away[3] = {z, x, y};
    for (int k = 0; k < 3; k++)
        for (int far = 0; far < 2; far++) {
            bool turned = (far == 1) == room;
            struct vector corner = plus(low, far, away[k]);
            add_surface(corner, side[k][turned], side[k][!turned], 0);
        }
}

static void make_room(void)
{
    struct random r = {23};
    surface = calloc((size_t)(6 * (boxes + 1) + 1), sizeof *surface);
    if (!surface)
        die("cannot allocate a room with %ld boxes", boxes);
    add_box((struct vector){0, 0, 0}, (struct vector){1, 1, 1}, true);
    for (long i = 0; i < boxes; i++) {
        double x = 0.05 + 0.7 * random_unit(&r), y = 0.05 + 0.5 * random_unit(&r), z = 0.05 + 0.7 * random_unit(&r);
        double dx = 0.05 + 0.15 * random_unit(&r), dy = 0.05 + 0.3 * random_unit(&r);
        double dz = 0.05 + 0.15 * random_unit(&r);
        add_box((struct vector){x, y, z}, (struct vector){dx, dy, dz}, false);
    }
    add_surface((struct vector){0.35, 0.99, 0.35}, (struct vector){0.3, 0, 0}, (struct vector){0, 0, 0.3}, 10);
    if (surface[surfaces - 1].normal.y > 0)
        shape(&surface[surfaces - 1], (struct vector){0.35, 0.99, 0.35}, (struct vector){0, 0, 0.3},
              (struct vector){0.3, 0, 0});
}

struct census {
    uint64_t hash, pieces, links;
    double area, shares; /* of pieces that are not divided; what they see, by area */
};

/* Adds up what p and its quarters have; `shares` is what the pieces that it is part of see. */
static void count(const struct piece *p, double shares, struct census *c)
{
    c->hash = hash_bytes(c->hash, &p->light[pass], sizeof p->light[pass]);
    c->pieces++;
    for (const struct link *l = p->link; l; l = l->next) {
        c->links++;
        shares += l->share;
    }
    for (int k = 0; p->child && k < 4; k++)
        count(&p->child[k], shares, c);
    if (!p->child) {
        c->area += p->area;
        c->shares += p->area * shares;
    }
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    boxes = specs[0].value;
    least_share = 1.0 / (double)specs[1].value;
    passes = specs[2].value;
    make_room();
    tasks_make();
    for (int i = 0; i < surfaces; i++)
        for (int j = 0; j < surfaces; j++)
            if (i != j)
                tasks_put(i % threads, &(struct task){REFINE, &surface[i], &surface[j]});
    run_team(MAIN_WAITS, work);
    struct census all = {.hash = HASH_START};
    for (int i = 0; i < surfaces; i++)
        count(&surface[i], 0, &all);
    printf("result: radiosity %ld boxes, %lu pieces, %lu links, %ld passes: %016lx\n", boxes, (unsigned long)all.pieces,
           (unsigned long)all.links, passes, (unsigned long)all.hash);
    if (self_check)
        check(fabs(all.shares / all.area - 1) < 0.25, "what a piece sees adds up to about one");
    return 0;
}
