/* Formatted input from streams that another thread has opened: what a call does not use is there for the next one, on any node, and
 * a call is made as a whole. */
#include "../harness.h"

#include <unistd.h>

enum { RECORDS = 200 };

static FILE *text;
static char path[] = "/tmp/stream_scans.XXXXXX";
static char *word;
static long sums[MAX_THREADS];
static pthread_barrier_t all;

static long reads_numbers(void)
{
    int number;
    long hex;
    double real;
    char name[10], end;
    EXPECT(1, fscanf(text, "%d", &number));
    EXPECT(12, number);
    EXPECT(3, fscanf(text, "%lx %lf %9s", &hex, &real, name));
    REQUIRE(hex == 0xff && real == 1.5 && strcmp(name, "name") == 0);
    /* What does not fit stays. */
    EXPECT(0, fscanf(text, "%d", &number));
    EXPECT('x', fgetc(text));
    EXPECT('y', getc(text));
    EXPECT(1, fscanf(text, "z%c", &end));
    EXPECT('\n', end);
    return ftell(text);
}

static long reads_words(void)
{
    int used = 0;
    EXPECT(1, fscanf(text, "%ms%n", &word, &used));
    EXPECT(1000, strlen(word));
    EXPECT(1000, used);
    char line[10];
    REQUIRE(fgets(line, sizeof line, text) && strcmp(line, "\n") == 0);
    EXPECT(1, fscanf(text, "%5[^,],", line));
    EXPECT(0, strcmp(line, "a b"));
    return ftell(text);
}

__attribute__((format(scanf, 1, 2))) static int scans_list(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int read = vfscanf(text, format, arguments);
    va_end(arguments);
    return read;
}

static long reads_rest(void)
{
    int numbers[8];
    EXPECT(8, scans_list("%d %d %d %d %d %d %d %d", &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4],
                  &numbers[5], &numbers[6], &numbers[7]));
    for (int i = 0; i < 8; i++)
        EXPECT(i + 1, numbers[i]);
    errno = 0;
    EXPECT(EOF, fscanf(text, "%d", &numbers[0]));
    EXPECT(0, errno);
    REQUIRE(feof(text) && !ferror(text));
    EXPECT(EOF, fscanf(text, "%d", &numbers[0]));
    return 0;
}

/* Threads share the records out. One that was torn would have parts of two records, or of none. */
static long takes(int self)
{
    pthread_barrier_wait(&all);
    for (;;) {
        int number, square;
        char name[20], expected[20];
        int read = fscanf(text, "record %d: %d %19s\n", &number, &square, name);
        if (read == EOF)
            return 0;
        EXPECT(3, read);
        snprintf(expected, sizeof expected, "name%d.", number);
        REQUIRE(square == number * number && strcmp(name, expected) == 0);
        sums[self] += number;
    }
}

static long reads_input(void)
{
    int first, second;
    EXPECT(2, scanf("%d %d", &first, &second));
    REQUIRE(first == 3 && second == 4);
    EXPECT(' ', getchar());
    EXPECT('f', getchar());
    return 0;
}

/* Other text takes the place of standard input, and then others that of that. */
static long takes_input(void)
{
    REQUIRE(freopen(path, "r", stdin) == stdin);
    return 0;
}

static long has_no_file(void)
{
    errno = 0;
    REQUIRE(freopen("/no/such/file", "r", text) == NULL);
    EXPECT(ENOENT, errno);
    return 0;
}

static long writes_file(void)
{
    text = freopen(path, "w+", text);
    REQUIRE(text);
    REQUIRE(fputs("3 4 five", text) >= 0);
    EXPECT(0, fflush(text));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    text = fdopen(file, "w+");
    REQUIRE(text);
    fprintf(text, "12 ff 1.5 name\nxyz\n%0*d\na b,1 2 3 4\n5 6 7 8", 1000, 0);
    rewind(text);
    EXPECT(19, in_new_thread(reads_numbers));
    EXPECT(1024, in_new_thread(reads_words));
    REQUIRE(word[0] == '0' && word[999] == '0');
    free(word);
    in_new_thread(reads_rest);

    rewind(text);
    for (int i = 1; i <= RECORDS; i++)
        fprintf(text, "record %d: %d name%d.\n", i, i * i, i);
    rewind(text);
    EXPECT(0, pthread_barrier_init(&all, NULL, threads));
    EXPECT(0, ftruncate(file, 0));
    for (int i = 1; i <= RECORDS; i++)
        fprintf(text, "record %d: %d name%d.\n", i, i * i, i);
    rewind(text);
    run_threads(threads, takes);
    long sum = 0;
    for (int i = 0; i < threads; i++)
        sum += sums[i];
    EXPECT(RECORDS * (RECORDS + 1) / 2, sum);

    in_new_thread(writes_file);
    in_new_thread(takes_input);
    in_new_thread(reads_input);
    char rest[10];
    EXPECT(1, scanf("%9s", rest));
    EXPECT(0, strcmp(rest, "ive"));
    in_new_thread(has_no_file);
    EXPECT(0, unlink(path));
    return pass();
}
