/* Registers that a process must ask for (Intel's AMX) are for threads of all nodes, also while they wait for pages and take turns. Where
 * the processor has none, there is nothing to see. */
#include "../harness.h"
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST = 0x1023, TILES = 18, BYTES = 1024, ROUNDS = 50 };

struct shape {
    unsigned char palette, start, unused[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
};

/* What all threads multiply, which one of them changes in each round. */
static _Alignas(4096) signed char left[BYTES], right[BYTES];
static _Alignas(4096) int products[MAX_THREADS][BYTES / 4];
static pthread_barrier_t barrier;

__attribute__((target("amx-tile,amx-int8"))) static void multiply(int *product)
{
    struct shape shape = {.palette = 1};
    for (int tile = 0; tile < 3; tile++) {
        shape.row_bytes[tile] = 64;
        shape.rows[tile] = 16;
    }
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_loadd(1, left, 64);
    _tile_loadd(2, right, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, product, 64);
    _tile_release();
}

static int element(int row, int column)
{
    int sum = 0;
    for (int i = 0; i < 64; i++)
        sum += left[row * 64 + i] * right[i / 4 * 64 + column * 4 + i % 4];
    return sum;
}

static long work(int self)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % threads == self)
            for (int i = 0; i < BYTES; i++) {
                left[i] = (signed char)(i * 7 + round);
                right[i] = (signed char)(i * 3 - round);
            }
        pthread_barrier_wait(&barrier);
        multiply(products[self]);
        for (int i = 0; i < BYTES / 4; i += 5)
            EXPECT(element(i / 16, i % 16), products[self][i]);
        pthread_barrier_wait(&barrier);
    }
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    if (syscall(SYS_arch_prctl, REQUEST, TILES) == 0) {
        pthread_barrier_init(&barrier, NULL, (unsigned)threads);
        run_threads(threads, work);
    }
    return pass();
}
