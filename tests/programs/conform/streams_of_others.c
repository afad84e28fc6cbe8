/* Streams that one thread has opened and threads on other nodes use: they read and write in turn and at once, move about
 * and close; what one has read ahead is what the next one gets. */
#include "../harness.h"

#include <unistd.h>

enum { LARGE = 3 << 20, LINES = 300 };

/* More of each kind than there are registers for. */
#define MANY "%d %s %ld %c %x %d %d %.2f %.1f %g %g %g %g %g %g %g %g %p\n", 1, "two", 3L, '4', 0x50, 6, 7, 8.25, 9.5, \
    10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, (void *)0x1234567

static FILE *text, *made, *command, *shared;
static int file;
static char path[] = "/tmp/streams_of_others.XXXXXX";
static char *large;
static long taken[MAX_THREADS];
static pthread_barrier_t all;

/* Runs each function in a thread of its own, one after the other. */
static void in_turn(int count, void *(*functions[])(void *))
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        EXPECT(0, pthread_create(&thread, NULL, functions[i], NULL));
        EXPECT(0, pthread_join(thread, NULL));
    }
}

static void at_once(void *(*function)(void *))
{
    pthread_t team[MAX_THREADS];
    for (long i = 0; i < threads; i++)
        EXPECT(0, pthread_create(&team[i], NULL, function, (void *)i));
    for (long i = 0; i < threads; i++)
        EXPECT(0, pthread_join(team[i], NULL));
}

static void *writes_characters(void *unused)
{
    EXPECT('a', fputc('a', made));
    EXPECT('b', putc('b', made));
    EXPECT('\n', putc_unlocked('\n', made));
    REQUIRE(fputs("a line\n", made) >= 0);
    EXPECT(3, fwrite("three\n.", 2, 3, made));
    EXPECT(0, fwrite("", 0, 7, made));
    return unused;
}

__attribute__((format(printf, 1, 2))) static int prints_list(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(made, format, arguments);
    va_end(arguments);
    return length;
}

static void *prints(void *unused)
{
    EXPECT(snprintf(NULL, 0, MANY), fprintf(made, MANY));
    EXPECT(12, prints_list("%s, %.3f\n", "list", 0.125));
    EXPECT(2001, fprintf(made, "%2000d\n", 5));
    EXPECT(0, fprintf(made, "%s", ""));
    EXPECT(0, fflush(made));
    return unused;
}

static void *writes_much(void *unused)
{
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 1000);
    EXPECT(LARGE, fwrite(large, 1, LARGE, made));
    memset(large, 0, LARGE);
    return unused;
}

static void *moves(void *unused)
{
    long end = ftell(made);
    fpos_t start;
    REQUIRE(end > LARGE);
    rewind(made);
    EXPECT(0, ftell(made));
    EXPECT(0, fgetpos(made, &start));
    EXPECT('a', getc(made));
    EXPECT('b', fgetc(made));
    EXPECT('x', ungetc('x', made));
    EXPECT('x', getc_unlocked(made));
    EXPECT(0, fsetpos(made, &start));
    EXPECT('a', getc(made));
    EXPECT(0, fseek(made, -3, SEEK_END));
    EXPECT(end - 3, ftell(made));
    errno = 0;
    EXPECT(-1, fseek(made, -1, SEEK_SET));
    EXPECT(EINVAL, errno);
    EXPECT(0, feof(made) | ferror(made));
    return unused;
}

static void *reads_lines(void *unused)
{
    char line[100], *grown = NULL;
    size_t size = 0;
    rewind(made);
    REQUIRE(fgets(line, sizeof line, made) == line && strcmp(line, "ab\n") == 0);
    REQUIRE(fgets(line, 4, made) == line && strcmp(line, "a l") == 0);
    REQUIRE(fgets(line, 1, made) == line && line[0] == '\0');
    EXPECT(4, getline(&grown, &size, made));
    EXPECT(0, strcmp(grown, "ine\n"));
    EXPECT(2, getdelim(&grown, &size, 'h', made));
    EXPECT(0, strcmp(grown, "th"));
    EXPECT(4, getline(&grown, &size, made));
    REQUIRE(fgets(line, sizeof line, made) && getline(&grown, &size, made) == 12);
    EXPECT(0, strcmp(grown, "list, 0.125\n"));
    char many[100];
    snprintf(many, sizeof many, MANY);
    EXPECT(0, strcmp(line, many));
    free(grown);
    return unused;
}

static void *reads_much(void *unused)
{
    EXPECT(0, fseek(made, -LARGE, SEEK_END));
    EXPECT(LARGE / 2, fread(large, 2, LARGE / 2, made));
    for (int i = 0; i < LARGE; i++)
        EXPECT((char)(i * 7 + i / 1000), large[i]);
    EXPECT(0, feof(made));
    EXPECT(0, fread(large, 1, 10, made));
    EXPECT(EOF, getc(made));
    REQUIRE(fgets(large, 10, made) == NULL && feof(made) != 0);
    clearerr(made);
    EXPECT(0, feof(made));
    EXPECT(0, ferror(text) | ferror(made));
    return unused;
}

static void *cannot_write(void *unused)
{
    errno = 0;
    EXPECT(EOF, fputs("x", text));
    EXPECT(EBADF, errno);
    REQUIRE(ferror(text) != 0);
    clearerr(text);
    return unused;
}

/* It has the descriptor that main has given it. */
static void *uses_descriptor(void *unused)
{
    EXPECT(file, fileno(made));
    EXPECT(0, setvbuf(made, NULL, _IOLBF, 1000));
    return unused;
}

static void *talks_to_command(void *unused)
{
    REQUIRE(fputs("piped\n", command) >= 0);
    return unused;
}

static void *ends_command(void *unused)
{
    EXPECT(3 << 8, pclose(command));
    return unused;
}

static void *closes(void *unused)
{
    EXPECT(0, fclose(made));
    EXPECT(0, fclose(text));
    return unused;
}

/* Lines of all threads, at once: none is torn. */
static void *appends(void *self)
{
    for (int i = 0; i < LINES; i++)
        REQUIRE(fprintf(shared, "thread %ld: line %d of %d, a number %f\n", (long)self, i, LINES, i / 8.0) > 0);
    return NULL;
}

/* Threads share the lines out; each line comes once. */
static void *takes(void *self)
{
    char *line = NULL;
    size_t size = 0;
    pthread_barrier_wait(&all);
    while (getline(&line, &size, shared) > 0) {
        long thread;
        int number, of;
        double value;
        REQUIRE(sscanf(line, "thread %ld: line %d of %d, a number %lf\n", &thread, &number, &of, &value) == 4);
        REQUIRE(value * 8 == number && of == LINES);
        taken[(long)self] += thread * LINES + number + 1;
    }
    free(line);
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    file = mkstemp(path);
    REQUIRE(file >= 0);
    large = malloc(LARGE);
    text = fopen(argv[0], "r");
    made = fdopen(file, "w+");
    char order[100];
    snprintf(order, sizeof order, "cat > %s.piped; exit 3", path);
    command = popen(order, "w");
    REQUIRE(text && made && command);
    in_turn(12, (void *(*[])(void *)){
        writes_characters, prints, writes_much, moves, reads_lines, reads_much, cannot_write, uses_descriptor,
        writes_characters, talks_to_command, ends_command, closes });
    snprintf(order, sizeof order, "%s.piped", path);
    FILE *piped = fopen(order, "r");
    REQUIRE(piped && fgets(order, sizeof order, piped) && strcmp(order, "piped\n") == 0);
    EXPECT(0, fclose(piped));

    shared = fopen(path, "w+");
    REQUIRE(shared);
    at_once(appends);
    appends((void *)(long)threads);
    rewind(shared);
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    at_once(takes);
    long sum = 0, lines = (threads + 1L) * LINES;
    for (int i = 0; i < threads; i++)
        sum += taken[i];
    EXPECT(lines * (lines + 1) / 2, sum);
    EXPECT(0, fclose(shared));
    snprintf(order, sizeof order, "%s.piped", path);
    EXPECT(0, unlink(order) | unlink(path));
    return pass();
}
