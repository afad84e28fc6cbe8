/* Streams into memory, from memory and by the program's own functions, which another thread has opened. */
#include "../harness.h"

static char *grown;
static size_t length;
static FILE *from, *into, *own;
static char fixed[100] = "one 2 three\n";

/* The cookie: where the functions read and write. */
static struct cookie {
    pthread_mutex_t lock;
    size_t written, read;
    int closed, calls;
    char data[20000];
} cookie = { .lock = PTHREAD_MUTEX_INITIALIZER };

static ssize_t reads(void *at, char *target, size_t bytes)
{
    struct cookie *is = at;
    pthread_mutex_lock(&is->lock);
    if (bytes > is->written - is->read)
        bytes = is->written - is->read;
    memcpy(target, is->data + is->read, bytes);
    is->read += bytes;
    is->calls++;
    pthread_mutex_unlock(&is->lock);
    return (ssize_t)bytes;
}

static ssize_t writes(void *at, const char *source, size_t bytes)
{
    struct cookie *is = at;
    pthread_mutex_lock(&is->lock);
    memcpy(is->data + is->written, source, bytes);
    is->written += bytes;
    is->calls++;
    pthread_mutex_unlock(&is->lock);
    return (ssize_t)bytes;
}

static int moves(void *at, off64_t *offset, int whence)
{
    struct cookie *is = at;
    REQUIRE(whence == SEEK_SET);
    is->read = (size_t)*offset;
    return 0;
}

static int closes(void *at)
{
    struct cookie *is = at;
    is->closed++;
    return 0;
}

/* Into memory: a block that grows, of which a flush shows the program the contents. */
static long writes_into(void)
{
    EXPECT(4, fprintf(into, "%d ab", 7));
    EXPECT(0, fflush(into));
    EXPECT(4, length);
    EXPECT(0, strcmp(grown, "7 ab"));
    for (int i = 0; i < 2000; i++)
        fprintf(into, "%d,", i);
    EXPECT(0, fflush(into));
    return (long)length;
}

static long closes_into(void)
{
    EXPECT(';', fputc(';', into));
    EXPECT(0, fclose(into));
    return (long)length;
}

/* What another thread has put there before. */
static long reads_from(void)
{
    char word[20];
    int number;
    EXPECT(2, fscanf(from, "%19s %d", word, &number));
    REQUIRE(strcmp(word, "four") == 0 && number == 5);
    EXPECT(' ', getc(from));
    EXPECT('s', getc(from));
    EXPECT('i', getc(from));
    rewind(from);
    REQUIRE(fgets(word, sizeof word, from) && strcmp(word, "four 5 six\n") == 0);
    return ftell(from);
}

static long fills(void)
{
    strcpy(fixed, "four 5 six\n");
    return 0;
}

static long writes_fixed(void)
{
    EXPECT(0, fseek(from, 0, SEEK_SET));
    REQUIRE(fputs("SEVEN", from) >= 0);
    EXPECT(0, fflush(from));
    return memcmp(fixed, "SEVEN5 six\n", 11);
}

static long writes_own(void)
{
    for (int i = 0; i < 1000; i++)
        fprintf(own, "line %d\n", i);
    EXPECT(0, fflush(own));
    EXPECT('0' + 9, cookie.data[cookie.written - 2]);
    return (long)cookie.written;
}

static long reads_own(void)
{
    char line[30];
    for (int i = 0; i < 1000; i++) {
        int number = -1;
        REQUIRE(fgets(line, sizeof line, own) && sscanf(line, "line %d", &number) == 1);
        EXPECT(i, number);
    }
    REQUIRE(fgets(line, sizeof line, own) == NULL && feof(own));
    return (long)cookie.read;
}

static long closes_own(void)
{
    EXPECT(0, fclose(own));
    return cookie.closed;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    into = open_memstream(&grown, &length);
    REQUIRE(into);
    long full = in_new_thread(writes_into);
    EXPECT(full, (long)length);
    REQUIRE(strncmp(grown, "7 ab0,1,2,", 10) == 0 && strcmp(grown + full - 5, "1999,") == 0);
    EXPECT(full + 1, in_new_thread(closes_into));
    REQUIRE(grown[0] == '7' && strcmp(grown + full - 5, "1999,;") == 0);
    free(grown);

    from = fmemopen(fixed, sizeof fixed, "r+");
    REQUIRE(from && setvbuf(from, NULL, _IONBF, 0) == 0);
    in_new_thread(fills);
    EXPECT(11, in_new_thread(reads_from));
    EXPECT(0, in_new_thread(writes_fixed));
    EXPECT(0, memcmp(fixed, "SEVEN5 six\n", 11));
    EXPECT(0, fclose(from));

    cookie_io_functions_t functions = { .read = reads, .write = writes, .seek = moves, .close = closes };
    own = fopencookie(&cookie, "w+", functions);
    REQUIRE(own);
    long written = in_new_thread(writes_own);
    EXPECT(written, (long)cookie.written);
    rewind(own);
    EXPECT(written, in_new_thread(reads_own));
    EXPECT(1, in_new_thread(closes_own));
    REQUIRE(cookie.closed == 1 && cookie.calls > 2);
    return pass();
}
