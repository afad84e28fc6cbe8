/* Variables of all shapes that C has. */
#include "says.h"
#include <stdint.h>
#include <stdlib.h>

struct vector {
    double x, y, z;
};

typedef struct vector vector_t;

struct body {
    vector_t position[2];
    float mass;
    const volatile int kind;
    union {
        long number;
        char text[8];
    };
    struct {
        int low, high;
    } range;
};

struct flags {
    unsigned a : 3;
    unsigned b : 7;
    unsigned long c : 40;
    int after;
};

struct tail {
    int count;
    double values[];
};

struct list {
    struct list *next;
    int value;
};

typedef int table_t[4][5];

int plain;
static long counters[8];
double cube[3][4][5];
table_t tables[2];
struct body bodies[6];
struct flags flags;
static struct {
    int first;
    struct vector where[3];
    struct body *bodies;
    char *text;
    void *anything;
} state;
double *rows[4];
double **matrix;
double (*grid)[100];
struct tail *tail;
struct list head, *first = &head;
uint8_t bytes[100];

static __attribute__((noinline)) int work(int by)
{
    static int calls;
    static struct vector last;
    calls += by;
    last.x += by;
    SAY_AS(calls, "work::calls");
    SAY_AS(last.z, "work::last.z");
    SAY_HERE("work");
    return calls;
}

static inline __attribute__((always_inline)) int inner(int by)
{
    SAY_HERE("inner");
    return by + 1;
}

__attribute__((noinline)) int outer(int by)
{
    int sum = inner(by) * 2;
    plain += sum;
    return sum;
}

int main(int argc, char **argv)
{
    (void)argv;
    say_images();
    SAY(plain);
    SAY(counters[0]);
    SAY(counters[7]);
    SAY(cube[2][3][4]);
    SAY(tables[1][2][3]);
    SAY(bodies[3].position[1].y);
    SAY(bodies[5].mass);
    SAY(bodies[5].kind);
    SAY(bodies[2].number);
    SAY(bodies[0].range.high);
    SAY(flags.after);
    SAY_AS(flags, "flags.a");
    SAY_AS(((char *)&flags)[1], "flags.b");
    SAY_AS(((char *)&flags)[3], "flags.c");
    SAY(state.first);
    SAY(state.where[2].y);
    SAY(state.bodies);
    SAY(rows[3]);
    SAY(head.value);
    SAY(bytes[99]);
    SAY_POINTER(state.bodies);
    SAY_POINTER(state.text);
    SAY_POINTER(rows[2]);
    SAY_POINTER(matrix);
    SAY_POINTER(grid);
    SAY_POINTER(first);
    SAY_POINTER(head.next);
    state.bodies = malloc(20 * sizeof *state.bodies);
    matrix = malloc(20 * sizeof *matrix);
    rows[1] = malloc(20 * sizeof **rows);
    grid = malloc(20 * sizeof *grid);
    tail = malloc(1000);
    SAY_TARGET(state.bodies, [17].position[1].x);
    SAY_TARGET(state.bodies, [0].range.high);
    SAY_TARGET(matrix, [9]);
    SAY_TARGET(rows[1], [19]);
    SAY_TARGET(grid, [3][17]);
    SAY_TARGET(tail, [0].values[33]);
    SAY_TARGET(first, [0].value);
    SAY_NO_TARGET(state.text);
    SAY_NO_TARGET(state.anything);
    plain = work(argc);
    SAY_HERE("main");
    return outer(argc) == 0;
}
