/* Threads that know of each other only by streams (FILE) of pipes, sockets and FIFOs see what the other has written before. */
#include "../harness.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { WORDS = 1500, BLOCK = 4096, LONG = 3 * BLOCK };
static int words[WORDS];

/* From main to the other thread, and back. */
static FILE *in[2], *out[2];

static void make_pipes(int ends[2][2])
{
    int there[2], back[2];
    EXPECT(0, pipe(there) | pipe(back));
    ends[0][0] = back[0], ends[0][1] = there[1];
    ends[1][0] = there[0], ends[1][1] = back[1];
}

static void make_sockets(int ends[2][2])
{
    int pair[2];
    EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int side = 0; side < 2; side++) {
        ends[side][0] = pair[side];
        ends[side][1] = dup(pair[side]);
    }
}

static void make_fifos(int ends[2][2])
{
    char folder[] = "/tmp/channel_streams.XXXXXX", path[100];
    REQUIRE(mkdtemp(folder));
    for (int side = 0; side < 2; side++) {
        snprintf(path, sizeof path, "%s/%d", folder, side);
        EXPECT(0, mkfifo(path, 0600));
        ends[side][0] = open(path, O_RDONLY | O_NONBLOCK);
        ends[!side][1] = open(path, O_WRONLY);
        EXPECT(0, fcntl(ends[side][0], F_SETFL, 0));
        EXPECT(0, unlink(path));
    }
    EXPECT(0, rmdir(folder));
}

static void flush_line(FILE *stream)
{
    REQUIRE(fputs("line\n", stream) >= 0);
    EXPECT(0, fflush(stream));
}

static void end_line(FILE *stream)
{
    EXPECT(0, setvbuf(stream, NULL, _IOLBF, BLOCK));
    EXPECT(5, fprintf(stream, "%s\n", "line"));
}

static void put_unbuffered(FILE *stream)
{
    EXPECT(0, setvbuf(stream, NULL, _IONBF, 0));
    for (const char *next = "line\n"; *next; next++)
        EXPECT(*next, putc(*next, stream));
}

/* The buffer is full three times; the line begins the first time. */
static void fill_buffer(FILE *stream)
{
    static const char filler[BLOCK] = "line\n";
    EXPECT(0, setvbuf(stream, NULL, _IOFBF, BLOCK));
    for (int i = 0; i < LONG / BLOCK; i++)
        EXPECT(BLOCK, fwrite(filler, 1, BLOCK, stream));
    EXPECT(0, fflush(stream));
}

/* A buffer that is written by code within the program. */
static void fill_inlined(FILE *stream)
{
    for (int i = 0; i < 5; i++)
        EXPECT("line\n"[i], putc_unlocked("line\n"[i], stream));
    EXPECT(0, fflush(stream));
}

static void put_wide(FILE *stream)
{
    REQUIRE(fputws(L"line\n", stream) >= 0);
    EXPECT(0, fflush(stream));
}

static void get_line(FILE *stream)
{
    char line[10];
    REQUIRE(fgets(line, sizeof line, stream) == line);
    EXPECT(0, strcmp(line, "line\n"));
}

static void get_bytes(FILE *stream)
{
    for (int i = 0; i < 5; i++)
        EXPECT("line\n"[i], getc(stream));
}

static void get_inlined(FILE *stream)
{
    for (int i = 0; i < 5; i++)
        EXPECT("line\n"[i], getc_unlocked(stream));
}

static void get_block(FILE *stream)
{
    char line[5];
    EXPECT(1, fread(line, 5, 1, stream));
    EXPECT(0, memcmp(line, "line\n", 5));
}

static void get_long(FILE *stream)
{
    char block[LONG];
    EXPECT(LONG, fread(block, 1, LONG, stream));
    EXPECT(0, memcmp(block, "line\n", 6));
}

static void get_allocated(FILE *stream)
{
    char *line = NULL;
    size_t size = 0;
    EXPECT(5, getline(&line, &size, stream));
    EXPECT(0, strcmp(line, "line\n"));
    free(line);
}

static void scan(FILE *stream)
{
    char word[5];
    EXPECT(1, fscanf(stream, "%4s", word));
    EXPECT('\n', fgetc(stream));
    EXPECT(0, strcmp(word, "line"));
}

static void get_wide(FILE *stream)
{
    for (int i = 0; i < 5; i++)
        EXPECT(L"line\n"[i], fgetwc(stream));
}

static const struct kind {
    const char *name;
    void (*make)(int[2][2]);
    void (*give)(FILE *), (*take)(FILE *);
} kinds[] = {
    {"line of a pipe", make_pipes, flush_line, get_line},
    {"bytes of a socket", make_sockets, end_line, get_bytes},
    {"allocated line of a FIFO", make_fifos, put_unbuffered, get_allocated},
    {"full buffers", make_pipes, fill_buffer, get_long},
    {"inlined bytes", make_pipes, fill_inlined, get_inlined},
    {"block of a FIFO", make_fifos, flush_line, get_block},
    {"scanned word", make_sockets, flush_line, scan},
    {"wide characters", make_pipes, put_wide, get_wide},
};
static const struct kind *kind;
static bool opens_itself;
static int ends[2][2];

static void open_streams(int side)
{
    in[side] = fdopen(ends[side][0], "r");
    out[side] = fdopen(ends[side][1], "w");
    REQUIRE(in[side] && out[side]);
}

/* Each side adds one to every word in turn, and finds what the other has made of them. */
static void check_and_add(int side, long round)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != 2 * round + side)
            fail("%s: side %d found %d in round %ld, expected %ld", kind->name, side, words[i], round, 2 * round + side);
        words[i]++;
    }
}

static void *other(void *unused)
{
    if (opens_itself)
        open_streams(1);
    for (long round = 0; round < iterations; round++) {
        kind->take(in[1]);
        check_and_add(1, round);
        kind->give(out[1]);
    }
    return unused;
}

static void run(void)
{
    pthread_t id;
    memset(words, 0, sizeof words);
    kind->make(ends);
    open_streams(0);
    if (!opens_itself)
        open_streams(1);
    EXPECT(0, pthread_create(&id, NULL, other, NULL));
    for (long round = 0; round < iterations; round++) {
        check_and_add(0, round);
        kind->give(out[0]);
        kind->take(in[0]);
    }
    EXPECT(0, pthread_join(id, NULL));
    for (int side = 0; side < 2; side++)
        EXPECT(0, fclose(in[side]) | fclose(out[side]));
}

/* Bytes come, or end, where the other side closes its stream. */
static FILE *closed;

static void *closes(void *text)
{
    if (*(char *)text)
        REQUIRE(fputs(text, closed) >= 0);
    memset(words, 0x11, sizeof words);
    EXPECT(0, fclose(closed));
    return text;
}

static void at_close(char *text)
{
    int pair[2];
    char line[10];
    pthread_t id;
    EXPECT(0, pipe(pair));
    FILE *read = fdopen(pair[0], "r");
    closed = fdopen(pair[1], "w");
    REQUIRE(read && closed);
    memset(words, 0, sizeof words);
    EXPECT(0, pthread_create(&id, NULL, closes, text));
    REQUIRE((fgets(line, sizeof line, read) == NULL) == (*text == '\0'));
    for (int i = 0; i < WORDS; i++)
        EXPECT(0x11111111, words[i]);
    EXPECT(0, pthread_join(id, NULL));
    EXPECT(0, fclose(read));
}

/* Two lines come at once. A thread elsewhere reads the first one, main the second one, which is in the buffer by then. */
static FILE *two;

static void *writes_two(void *unused)
{
    memset(words, 0x22, sizeof words);
    REQUIRE(fputs("line\nline\n", closed) >= 0);
    EXPECT(0, fflush(closed));
    return unused;
}

static void *reads_one(void *unused)
{
    pthread_t id;
    EXPECT(0, pthread_create(&id, NULL, writes_two, NULL));
    get_line(two);
    for (int i = 0; i < WORDS; i++)
        EXPECT(0x22222222, words[i]);
    EXPECT(0, pthread_join(id, NULL));
    return unused;
}

static void in_the_buffer(void)
{
    int pair[2];
    pthread_t id;
    EXPECT(0, pipe(pair));
    two = fdopen(pair[0], "r");
    closed = fdopen(pair[1], "w");
    REQUIRE(two && closed);
    memset(words, 0, sizeof words);
    EXPECT(0, pthread_create(&id, NULL, reads_one, NULL));
    EXPECT(0, pthread_join(id, NULL));
    get_line(two);
    for (int i = 0; i < WORDS; i++)
        EXPECT(0x22222222, words[i]);
    EXPECT(0, fclose(two) | fclose(closed));
}

/* The number of a regular file's stream becomes that of a pipe, and the other way around. */
static void other_kinds(void)
{
    static const struct kind line = {"replaced descriptor", make_pipes, flush_line, get_line};
    pthread_t id;
    FILE *file = tmpfile();
    REQUIRE(file);
    flush_line(file);
    int descriptor = fileno(file);
    kind = &line;
    opens_itself = false;
    memset(words, 0, sizeof words);
    make_pipes(ends);
    EXPECT(descriptor, dup2(ends[0][1], descriptor));
    open_streams(0);
    open_streams(1);
    EXPECT(0, pthread_create(&id, NULL, other, NULL));
    for (long round = 0; round < iterations; round++) {
        check_and_add(0, round);
        flush_line(file);
        get_line(in[0]);
    }
    EXPECT(0, pthread_join(id, NULL));
    for (int side = 0; side < 2; side++)
        EXPECT(0, fclose(in[side]) | fclose(out[side]));
    EXPECT(0, fclose(file));
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 10);
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        kind = &kinds[i / 2];
        opens_itself = i % 2;
        run();
    }
    at_close("");
    at_close("line\n");
    in_the_buffer();
    other_kinds();
    return pass();
}
