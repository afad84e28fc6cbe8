/* stdio in threads with heap buffers: fread, fwrite, getline, fgets, fscanf, setvbuf, open_memstream, directories. */
#include "../harness.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 3000 };
static struct area {
    char directory[200];
    char path[300];
    long out[RECORDS], in[RECORDS];
    char buffer[8192]; /* the stream's own buffer */
    char line[300];
    char *grown;
    size_t grown_size;
    char *memory;
    size_t memory_size;
    int number;
    char word[40];
} *areas[MAX_THREADS];

static void binary(struct area *a)
{
    FILE *f = fopen(a->path, "wb");
    REQUIRE(f);
    EXPECT(0, setvbuf(f, a->buffer, _IOFBF, sizeof a->buffer));
    EXPECT(RECORDS, fwrite(a->out, sizeof(long), RECORDS, f));
    EXPECT(0, fclose(f));
    f = fopen(a->path, "rb");
    REQUIRE(f);
    EXPECT(RECORDS, fread(a->in, sizeof(long), RECORDS, f));
    EXPECT(0, fread(a->in, 1, 1, f));
    REQUIRE(feof(f));
    EXPECT(0, fclose(f));
}

static void text(struct area *a)
{
    FILE *f = fopen(a->path, "w+");
    REQUIRE(f);
    for (int i = 0; i < 500; i++)
        fprintf(f, "line %d %.*s\n", i, i % 200, "....................................................");
    fprintf(f, "42 word\n");
    rewind(f);
    for (int i = 0; i < 250; i++) {
        REQUIRE(fgets(a->line, sizeof a->line, f));
        REQUIRE(atoi(a->line + 5) == i);
    }
    for (int i = 250; i < 500; i++) {
        REQUIRE(getline(&a->grown, &a->grown_size, f) > 0);
        REQUIRE(atoi(a->grown + 5) == i);
    }
    EXPECT(2, fscanf(f, "%d %39s", &a->number, a->word));
    EXPECT(0, fclose(f));
    f = open_memstream(&a->memory, &a->memory_size);
    REQUIRE(f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "%d,", i);
    EXPECT(0, fclose(f));
}

static int entries(const char *path)
{
    DIR *d = opendir(path);
    REQUIRE(d);
    int count = 0;
    struct dirent *e;
    while ((e = readdir(d)) != NULL)
        count += e->d_name[0] != '.';
    EXPECT(0, closedir(d));
    return count;
}

static long work(int self)
{
    struct area *a = areas[self];
    REQUIRE(mkdtemp(a->directory));
    snprintf(a->path, sizeof a->path, "%s/file", a->directory);
    binary(a);
    text(a);
    EXPECT(1, entries(a->directory));
    EXPECT(0, unlink(a->path));
    EXPECT(0, rmdir(a->directory));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    for (int i = 0; i < threads; i++) {
        struct area *a = areas[i] = calloc(1, sizeof *a);
        snprintf(a->directory, sizeof a->directory, "/tmp/io_stdio.%d.XXXXXX", i);
        for (int k = 0; k < RECORDS; k++)
            a->out[k] = i * 10000 + k;
    }
    run_threads(threads, work);
    for (int i = 0; i < threads; i++) {
        struct area *a = areas[i];
        EXPECT(0, memcmp(a->in + 1, a->out + 1, sizeof a->in - sizeof(long)));
        EXPECT(42, a->number);
        EXPECT(0, strcmp(a->word, "word"));
        REQUIRE(strncmp(a->grown, "line 499 ", 9) == 0);
        EXPECT(3890, a->memory_size);
        REQUIRE(strncmp(a->memory + 3885, ",999,", 5) == 0);
        free(a->grown);
        free(a->memory);
    }
    return pass();
}
