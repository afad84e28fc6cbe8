/* Red-black successive over-relaxation on a rectangular plate with fixed edges.
 *
 * The points are coloured like a chessboard and each colour is stored in a matrix of its own, so that an update of
 * one colour reads only the other. Threads own bands of rows and meet at a barrier after each colour: the only
 * sharing is of the rows at the edges of the bands. Main initialises both matrices and then computes as thread 0.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>

static struct option_spec specs[] = {
    {'m', "rows", 512, 3072, 1, 100000, 0},
    {'n', "columns (even)", 512, 4096, 2, 100000, 0},
    {'i', "iterations", 20, 100, 1, 1000000, 0},
};
static struct app app = {"sor", "red-black successive over-relaxation", specs, 3, NULL, NULL};

static long rows, half; /* interior rows; points of one colour in a row */
static long iterations;
static float *red, *black; /* (rows + 2) x (half + 2), edges included */

static float *row(float *plane, long i)
{
    return plane + i * (half + 2);
}

/* New values of row i of `mine` from the four neighbours, all in `other`. Odd rows of red are shifted by one
 * column against odd rows of black, so the horizontal neighbours of k are k and k + shift. */
static void relax_row(float *mine, float *other, long i, long shift)
{
    const float *up = row(other, i - 1), *here = row(other, i), *down = row(other, i + 1);
    float *to = row(mine, i);
    for (long k = 1; k <= half; k++)
        to[k] = (up[k] + down[k] + here[k] + here[k + shift]) * 0.25f;
}

static void work(int self)
{
    long first, last;
    my_block(rows, self, &first, &last);
    for (long step = 0; step < iterations; step++) {
        for (long i = first + 1; i <= last; i++)
            relax_row(red, black, i, i % 2 ? -1 : 1);
        team_barrier();
        for (long i = first + 1; i <= last; i++)
            relax_row(black, red, i, i % 2 ? 1 : -1);
        team_barrier();
    }
}

static void initialise(void)
{
    for (long i = 0; i < rows + 2; i++)
        for (long k = 0; k < half + 2; k++) {
            bool edge = i == 0 || i == rows + 1 || k == 0 || k == half + 1;
            row(red, i)[k] = row(black, i)[k] = edge ? 1.0f + 0.001f * (float)((i * 7 + k * 3) % 101) : 0.0f;
        }
}

/* Repeats the computation in one thread with the two colours interleaved in one matrix. */
static void verify(void)
{
    long width = 2 * (half + 2);
    float *grid = must_alloc(sizeof(float) * (size_t)((rows + 2) * width));
    /* In row i, red point k is at column 2k + (i odd ? 0 : 1), black point k at the other one. */
    float *saved_red = red, *saved_black = black;
    float *fresh = must_alloc(sizeof(float) * 2 * (size_t)((rows + 2) * (half + 2)));
    red = fresh;
    black = fresh + (rows + 2) * (half + 2);
    initialise();
    for (long i = 0; i < rows + 2; i++)
        for (long k = 0; k < half + 2; k++) {
            grid[i * width + 2 * k + (i % 2 ? 0 : 1)] = row(red, i)[k];
            grid[i * width + 2 * k + (i % 2 ? 1 : 0)] = row(black, i)[k];
        }
    for (long step = 0; step < iterations; step++)
        for (int colour = 0; colour < 2; colour++)
            for (long i = 1; i <= rows; i++)
                for (long k = 1; k <= half; k++) {
                    long c = 2 * k + ((i % 2 ? 0 : 1) ^ colour);
                    float *p = grid + i * width + c;
                    p[0] = (p[-width] + p[width] + (p[-1] + p[1])) * 0.25f;
                }
    red = saved_red;
    black = saved_black;
    bool same = true;
    for (long i = 1; i <= rows; i++)
        for (long k = 1; k <= half; k++) {
            same &= fabsf(grid[i * width + 2 * k + (i % 2 ? 0 : 1)] - row(red, i)[k]) < 1e-4f;
            same &= fabsf(grid[i * width + 2 * k + (i % 2 ? 1 : 0)] - row(black, i)[k]) < 1e-4f;
        }
    check(same, "equal to an interleaved relaxation by one thread");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    rows = specs[0].value;
    if (specs[1].value % 2)
        die("-n wants an even number of columns, not %ld", specs[1].value);
    half = specs[1].value / 2;
    iterations = specs[2].value;
    size_t plane = sizeof(float) * (size_t)((rows + 2) * (half + 2));
    red = must_alloc(plane);
    black = must_alloc(plane);
    initialise();
    run_team(MAIN_WORKS, work);
    uint64_t hash = hash_bytes(hash_bytes(HASH_START, red, plane), black, plane);
    printf("result: sor %ld x %ld, %ld iterations: %016lx\n", rows, 2 * half, iterations, (unsigned long)hash);
    if (self_check)
        verify();
    return 0;
}
