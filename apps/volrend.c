/* Volume rendering: rays through a cube of densities, frame after frame from another side.
 *
 * Main makes the densities and, for each small cube of them, their maximum, by which rays leap over what is empty;
 * from then on both are only read. A ray ends where what is in front of it hides the rest, so that tiles take very
 * different times: they are dealt to the threads' queues in equal parts, and a thread that has done its own steals
 * from others. There is a barrier after each frame.
 */
#include "common.h"
#include "tasks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct option_spec specs[] = {
    {'n', "side of the cube in densities (a multiple of 8)", 48, 160, 8, 1024, 0},
    {'w', "width and height of the picture in pixels", 64, 256, 8, 8192, 0},
    {'i', "frames", 3, 10, 1, 10000, 0},
    {'t', "side of a tile in pixels", 8, 8, 1, 1024, 0},
};
static struct app app = {"volrend", "volume rendering by tiles with stealing", specs, 4, NULL, NULL};

enum { LEAP = 8, BLOBS = 40, EMPTY = 60 }; /* densities below EMPTY cannot be seen */

static long n, width, frames, tile;
static unsigned char *density; /* [z][y][x] */
static unsigned char *most;    /* of the cubes of side LEAP and what interpolation in them touches */
static unsigned char *picture;
static uint64_t result = HASH_START;

/* What a frame looks from: the place of a pixel is corner + x * right + y * down, and rays go along `ahead`. */
struct view {
    double corner[3], right[3], down[3], ahead[3];
};
static struct view view;

static void look_from(long frame)
{
    double turn = 0.3 + 0.37 * (double)frame, scale = 1.6 * (double)n / (double)width, middle = 0.5 * (double)n;
    double c = cos(turn), s = sin(turn), tilt = 0.4, ct = cos(tilt), st = sin(tilt);
    double right[3] = {c, 0, -s}, down[3] = {-s * st, ct, -c * st}, ahead[3] = {s * ct, st, c * ct};
    for (int k = 0; k < 3; k++) {
        view.ahead[k] = ahead[k];
        view.right[k] = scale * right[k];
        view.down[k] = scale * down[k];
        view.corner[k] = middle - (double)n * ahead[k] - 0.5 * (double)width * (view.right[k] + view.down[k]);
    }
}

/* Interpolated between the eight densities around a place that is inside. */
static double density_at(const double *at)
{
    long x = (long)at[0], y = (long)at[1], z = (long)at[2];
    double fx = at[0] - (double)x, fy = at[1] - (double)y, fz = at[2] - (double)z;
    const unsigned char *d = density + (z * n + y) * n + x;
    double back[2];
    for (int k = 0; k < 2; k++, d += n * n) {
        double above = d[0] + fx * (d[1] - d[0]), below = d[n] + fx * (d[n + 1] - d[n]);
        back[k] = above + fy * (below - above);
    }
    return back[0] + fz * (back[1] - back[0]);
}

static bool is_inside(const double *at)
{
    double end = (double)(n - 1);
    return at[0] >= 0 && at[1] >= 0 && at[2] >= 0 && at[0] < end && at[1] < end && at[2] < end;
}

static bool is_empty(const double *at)
{
    long m = n / LEAP;
    return most[((long)at[2] / LEAP * m + (long)at[1] / LEAP) * m + (long)at[0] / LEAP] < EMPTY;
}

/* Steps from `at` until the ray has left the small cube that it is in. */
static long steps_to_leave(const double *at)
{
    double least = INFINITY;
    for (int k = 0; k < 3; k++) {
        double low = floor(at[k] / LEAP) * LEAP, border = view.ahead[k] > 0 ? low + LEAP : low;
        if (view.ahead[k] != 0)
            least = fmin(least, (border - at[k]) / view.ahead[k]);
    }
    return (long)least + 1;
}

/* The light that comes along the ray of a pixel, which takes steps of length 1. */
static double cast(long x, long y, bool leaping)
{
    double seen = 0, clear = 1; /* the part of the light from behind that comes through */
    for (long step = 0; step < 2 * n && clear > 0.02;) {
        double at[3];
        for (int k = 0; k < 3; k++)
            at[k] = view.corner[k] + (double)x * view.right[k] + (double)y * view.down[k] +
                    (double)step * view.ahead[k];
        if (!is_inside(at)) {
            step++;
            continue;
        }
        if (leaping && is_empty(at)) {
            step += steps_to_leave(at);
            continue;
        }
        double d = density_at(at);
        if (d >= EMPTY) {
            double hides = fmin(0.9, (d - EMPTY) / 400);
            seen += clear * hides * (d / 255) * (1 - 0.5 * (double)step / (double)(2 * n));
            clear *= 1 - hides;
        }
        step++;
    }
    return seen;
}

static void render(int self)
{
    struct task task;
    long across = (width + tile - 1) / tile;
    while (tasks_take(self, &task)) {
        long x0 = task.kind % across * tile, y0 = task.kind / across * tile;
        for (long y = y0; y < y0 + tile && y < width; y++)
            for (long x = x0; x < x0 + tile && x < width; x++)
                picture[y * width + x] = (unsigned char)(255 * fmin(1, cast(x, y, true)) + 0.5);
    }
}

static void work(int self)
{
    long across = (width + tile - 1) / tile, first, last;
    my_block(across * across, self, &first, &last);
    for (long frame = 0; frame < frames; frame++) {
        if (self == 0) {
            look_from(frame);
            tasks_again();
        }
        for (long t = last; t > first; t--)
            tasks_put(self, &(struct task){.kind = t - 1});
        team_barrier();
        render(self);
        team_barrier();
        if (self == 0)
            result = hash_bytes(result, picture, (size_t)(width * width));
    }
}

static void make_densities(void)
{
    struct random r = {17};
    double centre[BLOBS][3], radius[BLOBS];
    for (int b = 0; b < BLOBS; b++) {
        for (int k = 0; k < 3; k++)
            centre[b][k] = (0.15 + 0.7 * random_unit(&r)) * (double)n;
        radius[b] = (0.03 + 0.09 * random_unit(&r)) * (double)n;
    }
    memset(density, 0, (size_t)(n * n * n));
    for (int b = 0; b < BLOBS; b++) {
        long low[3], high[3];
        for (int k = 0; k < 3; k++) {
            low[k] = (long)fmax(0, centre[b][k] - radius[b]);
            high[k] = (long)fmin((double)n - 1, centre[b][k] + radius[b]);
        }
        for (long z = low[2]; z <= high[2]; z++)
            for (long y = low[1]; y <= high[1]; y++)
                for (long x = low[0]; x <= high[0]; x++) {
                    double dx = (double)x - centre[b][0], dy = (double)y - centre[b][1], dz = (double)z - centre[b][2];
                    double share = 1 - (dx * dx + dy * dy + dz * dz) / (radius[b] * radius[b]);
                    unsigned char *d = density + (z * n + y) * n + x;
                    if (share > 0)
                        *d = (unsigned char)fmin(255, *d + 255 * share);
                }
    }
}

/* A place in a small cube is interpolated between densities of it and of the next layer. */
static void find_maxima(void)
{
    long m = n / LEAP;
    memset(most, 0, (size_t)(m * m * m));
    for (long z = 0; z < n; z++)
        for (long y = 0; y < n; y++)
            for (long x = 0; x < n; x++) {
                unsigned char d = density[(z * n + y) * n + x];
                for (int corner = 0; corner < 8; corner++) {
                    long cx = (x - (corner & 1)) / LEAP, cy = (y - (corner >> 1 & 1)) / LEAP;
                    long cz = (z - (corner >> 2)) / LEAP;
                    unsigned char *at = &most[(cz * m + cy) * m + cx];
                    *at = d > *at ? d : *at;
                }
            }
}

static void verify(void)
{
    bool same = true;
    for (long y = 0; y < width; y += 3)
        for (long x = 0; x < width; x += 3)
            same = same && picture[y * width + x] == (unsigned char)(255 * fmin(1, cast(x, y, false)) + 0.5);
    check(same, "rays that do not leap see the same");
}

int main(int argc, char **argv)
{
    parse_options(&app, argc, argv);
    n = specs[0].value;
    width = specs[1].value;
    frames = specs[2].value;
    tile = specs[3].value;
    if (n % LEAP)
        die("-n wants a multiple of %d, not %ld", LEAP, n);
    density = must_alloc((size_t)(n * n * n));
    most = must_alloc((size_t)(n / LEAP * (n / LEAP) * (n / LEAP)));
    picture = must_alloc((size_t)(width * width));
    make_densities();
    find_maxima();
    tasks_make();
    run_team(MAIN_WAITS, work);
    printf("result: volrend %ld, %ld frames of %ld: %016lx\n", n, frames, width, (unsigned long)result);
    if (self_check)
        verify();
    return 0;
}
