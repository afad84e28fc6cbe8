/* OpenMP: nests of loops whose iterations wait for others: ordered(n) with depend(sink) and depend(source). */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))
#define N 7

static long table[N][N], cube[N][N][N], line[200], seven[2][2][2][2][2][2][2][2];

/* Paths through a table: each place needs the one above and the one to the left. */
#define WAVE(...)                                                                                                      \
    do {                                                                                                               \
        memset(table, 0, sizeof table);                                                                                \
        _Pragma(#__VA_ARGS__) for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)                                  \
        {                                                                                                              \
            _Pragma("omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)") table[i][j] =                       \
                i && j ? table[i - 1][j] + table[i][j - 1] : 1;                                                        \
            _Pragma("omp ordered depend(source)")                                                                      \
        }                                                                                                              \
        CHECK(table[N - 1][N - 1] == 924, "%s: %ld", #__VA_ARGS__, table[N - 1][N - 1]);                        \
    } while (0)

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    omp_set_num_threads(threads);
    for (long round = 0; round < iterations; round++) {
        WAVE(omp parallel for ordered(2));
        WAVE(omp parallel for ordered(2) schedule(static, 1));
        WAVE(omp parallel for ordered(2) schedule(dynamic));
        WAVE(omp parallel for ordered(2) schedule(dynamic, 3));
        WAVE(omp parallel for ordered(2) schedule(guided));
        omp_set_schedule(omp_sched_dynamic, 2);
        WAVE(omp parallel for ordered(2) schedule(runtime));
        memset(line, 0, sizeof line);
#pragma omp parallel
        {
#pragma omp for ordered(1) schedule(dynamic, 5) nowait
            for (long i = 100; i > 0; i -= 2) {
#pragma omp ordered depend(sink : i + 4)
                line[i] = 1 + (i + 4 <= 100 ? line[i + 4] : 0);
#pragma omp ordered depend(source)
            }
#pragma omp for ordered(1) schedule(static, 2)
            for (unsigned long long i = 101; i < 200; i += 3) {
#pragma omp ordered depend(sink : i - 3)
                line[i] = 1 + (i > 101 ? line[i - 3] : 0);
#pragma omp ordered depend(source)
            }
        }
        CHECK(line[2] == 25 && line[4] == 25, "down: %ld %ld", line[2], line[4]);
        CHECK(line[197] == 33, "up: %ld", line[197]);
        memset(cube, 0, sizeof cube);
#pragma omp parallel
#pragma omp for collapse(2) ordered(3) schedule(dynamic, 7)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < 3; k++) {
#pragma omp ordered depend(sink : i - 1, j, k) depend(sink : i, j - 1, k + 1)
                    cube[i][j][k] = 1 + (i ? cube[i - 1][j][k] : 0) + (j && k < 2 ? cube[i][j - 1][k + 1] : 0);
#pragma omp ordered depend(source)
                }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < 3; k++)
                    CHECK(cube[i][j][k] == 1 + (i ? cube[i - 1][j][k] : 0) + (j && k < 2 ? cube[i][j - 1][k + 1] : 0),
                          "cube %d %d %d: %ld", i, j, k, cube[i][j][k]);
        memset(seven, 0, sizeof seven);
#pragma omp parallel for ordered(8) schedule(static, 1)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++)
                for (int c = 0; c < 2; c++)
                    for (int d = 0; d < 2; d++)
                        for (int e = 0; e < 2; e++)
                            for (int f = 0; f < 2; f++)
                                for (int g = 0; g < 2; g++)
                                    for (int h = 0; h < 2; h++) {
#pragma omp ordered depend(sink : a - 1, b, c, d, e, f, g, h)
                                        seven[a][b][c][d][e][f][g][h] = a ? seven[0][b][c][d][e][f][g][h] + 1 : h;
#pragma omp ordered depend(source)
                                    }
        CHECK(seven[1][1][1][1][1][1][1][1] == 2, "seven: %ld", seven[1][1][1][1][1][1][1][1]);
    }
    return pass();
}
