/* Transfers without the kernel's cache, where the file system has them: they take aligned memory and whole blocks only. */
#include "../harness.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 600 };

/* Main and the threads use it by turns. */
static struct area {
    char path[64];
    int file;
    char *out, *in;
} *area;

static long write_blocks(void)
{
    memset(area->out, 'a', BLOCKS * BLOCK);
    memset(area->out + 7 * BLOCK, 'b', 3 * BLOCK);
    EXPECT(BLOCKS * BLOCK, pwrite(area->file, area->out, BLOCKS * BLOCK, 0));
    EXPECT(BLOCK, pwrite(area->file, area->out + 8 * BLOCK, BLOCK, 2 * BLOCK));
    return 0;
}

static long read_blocks(void)
{
    EXPECT(BLOCKS * BLOCK, pread(area->file, area->in, BLOCKS * BLOCK, 0));
    EXPECT('b', area->in[2 * BLOCK]);
    EXPECT('a', area->in[BLOCKS * BLOCK - 1]);
    EXPECT(0, memcmp(area->in + 3 * BLOCK, area->out + 3 * BLOCK, (BLOCKS - 3) * BLOCK));
    struct iovec parts[2] = {{area->in + BLOCK, BLOCK}, {area->in, BLOCK}};
    EXPECT(2 * BLOCK, preadv(area->file, parts, 2, 6 * BLOCK));
    EXPECT('a', area->in[BLOCK]);
    EXPECT('b', area->in[0]);
    EXPECT(512, pread(area->file, area->in, 512, 10 * BLOCK - 512));
    EXPECT('b', area->in[511]);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 1, 1);
    area = calloc(1, sizeof *area);
    snprintf(area->path, sizeof area->path, "/tmp/direct_files.XXXXXX");
    int file = mkstemp(area->path);
    area->file = open(area->path, O_RDWR | O_DIRECT);
    if (area->file < 0 && errno == EINVAL) {
        area->file = file;
    }
    REQUIRE(area->file >= 0);
    unlink(area->path);
    area->out = aligned_alloc(BLOCK, BLOCKS * BLOCK);
    area->in = aligned_alloc(BLOCK, BLOCKS * BLOCK);
    REQUIRE(area->out && area->in);
    EXPECT(0, in_new_thread(write_blocks));
    EXPECT(0, in_new_thread(read_blocks));
    EXPECT(0, write_blocks());
    EXPECT(0, read_blocks());
    return pass();
}
