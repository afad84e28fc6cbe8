/* Memory that the C library allocates for the program: read and freed by other threads than the one that got it. */
#include "../harness.h"
#include <argz.h>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

enum { MOST = 64, LONG = 100 * 1000 };

/* What one call gave, and what must be in it. */
static struct {
    void *block;
    char *expected;
    size_t length;
    int line;
} given[MOST];
static int count;

/* Notes a block, and a copy of what is in it. */
static void note(void *block, size_t length, int line)
{
    if (!block || count == MOST)
        fail("line %d: nothing", line);
    given[count].block = block;
    given[count].expected = malloc(length);
    memcpy(given[count].expected, block, length);
    given[count].length = length;
    given[count++].line = line;
}

static void note_text(char *text, int line)
{
    note(text, text ? strlen(text) + 1 : 0, line);
}

#define give(block, length) note(block, length, __LINE__)
#define give_text(text) note_text(text, __LINE__)

/* A stream into memory that grows far beyond the C library's own buffers. */
static void streams(void)
{
    for (int lines = 1; lines < 20000; lines *= 20) {
        char *block = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&block, &size);
        REQUIRE(stream);
        for (int i = 0; i < lines; i++)
            fprintf(stream, "line %d\n", i);
        EXPECT(0, fflush(stream));
        EXPECT(0, strncmp(block, "line 0\n", 7));
        EXPECT(0, fclose(stream));
        EXPECT(strlen(block), size);
        give(block, size + 1);
        wchar_t *wide = NULL;
        stream = open_wmemstream(&wide, &size);
        REQUIRE(stream);
        for (int i = 0; i < lines; i++)
            fwprintf(stream, L"line %d\n", i);
        EXPECT(0, fclose(stream));
        EXPECT(wcslen(wide), size);
        give(wide, (size + 1) * sizeof *wide);
    }
}

static void lines(void)
{
    FILE *file = tmpfile();
    for (int i = 0; i < LONG; i++)
        putc('x', file);
    fputs("\nsecond;third", file);
    rewind(file);
    char *line = NULL, *second = NULL;
    size_t size = 0, second_size = 0;
    EXPECT(LONG + 1, getline(&line, &size, file));
    EXPECT(7, getdelim(&second, &second_size, ';', file));
    EXPECT(0, fclose(file));
    give_text(line);
    give_text(second);
}

static void texts(void)
{
    char *text = malloc(LONG), *printed = NULL;
    memset(text, 'y', LONG - 1);
    text[LONG - 1] = '\0';
    give_text(strdup(text));
    give_text(strndup(text, LONG / 2));
    wchar_t *wide = wcsdup(L"wide");
    give(wide, 5 * sizeof *wide);
    EXPECT(LONG + 6, asprintf(&printed, "%s and %s", text, "so"));
    give_text(printed);
    EXPECT(1, sscanf(text, "%ms", &printed));
    give_text(printed);
    EXPECT(1, sscanf("letters 42", "%m[a-z]", &printed));
    give_text(printed);
    size_t length = 0;
    EXPECT(0, argz_create_sep("a:b:c", ':', &printed, &length));
    EXPECT(6, length);
    EXPECT(0, argz_add(&printed, &length, "dd"));
    give(printed, length);
    free(text);
}

static int is_of_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void paths(void)
{
    char folder[] = "/tmp/allocating.XXXXXX", path[100];
    REQUIRE(mkdtemp(folder));
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "%s/file%d", folder, i);
        EXPECT(0, close(open(path, O_WRONLY | O_CREAT, 0600)));
    }
    give_text(realpath(folder, NULL));
    give_text(canonicalize_file_name(folder));
    give_text(getcwd(NULL, 0));
    give_text(get_current_dir_name());
    struct dirent **entries = NULL;
    int found = scandir(folder, &entries, is_of_folder, alphasort);
    EXPECT(50, found);
    for (int i = 0; i < 10; i++)
        give_text(strdup(entries[i]->d_name));
    give(entries[10], entries[10]->d_reclen);
    give(entries[11], entries[11]->d_reclen);
    for (int i = 0; i < found; i++)
        if (i != 10 && i != 11)
            free(entries[i]);
    give(entries, sizeof *entries);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "%s/file%d", folder, i);
        EXPECT(0, unlink(path));
    }
    EXPECT(0, rmdir(folder));
}

/* Structures that have a function of their own to be freed with: read, and then freed, by another thread. */
static struct addrinfo *addresses;
static glob_t matches;
static wordexp_t words;
static struct ifaddrs *interfaces;
static regex_t expression;
static void *tree;

static int compare(const void *one, const void *two)
{
    return strcmp(one, two);
}

static void keep(void *text)
{
    REQUIRE(strlen(text) > 0);
}

static void structures(void)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    EXPECT(0, getaddrinfo("127.0.0.1", "80", &hints, &addresses));
    EXPECT(0, glob("/etc/pass*d", 0, NULL, &matches));
    EXPECT(0, wordexp("one two '3 4'", &words, WRDE_NOCMD));
    EXPECT(0, getifaddrs(&interfaces));
    EXPECT(0, regcomp(&expression, "^[a-c]+(x|y)*$", REG_EXTENDED));
    REQUIRE(tsearch("one", &tree, compare) && tsearch("two", &tree, compare));
}

static void use_structures(void)
{
    REQUIRE(addresses->ai_family == AF_INET && addresses->ai_addr->sa_family == AF_INET);
    EXPECT(0, strcmp(addresses->ai_canonname, "127.0.0.1"));
    freeaddrinfo(addresses);
    EXPECT(0, strcmp(matches.gl_pathv[0], "/etc/passwd"));
    globfree(&matches);
    EXPECT(3, words.we_wordc);
    EXPECT(0, strcmp(words.we_wordv[2], "3 4"));
    wordfree(&words);
    for (struct ifaddrs *each = interfaces; each; each = each->ifa_next)
        REQUIRE(strlen(each->ifa_name) > 0);
    freeifaddrs(interfaces);
    EXPECT(0, regexec(&expression, "abcxy", 0, NULL, 0));
    EXPECT(REG_NOMATCH, regexec(&expression, "abd", 0, NULL, 0));
    regfree(&expression);
    REQUIRE(tfind("two", &tree, compare) && !tfind("three", &tree, compare));
    REQUIRE(tsearch("three", &tree, compare));
    tdestroy(tree, keep);
}

static pthread_barrier_t ready;

/* A stream that one thread goes on writing to after others have looked at what is in it. */
static char *contents;
static size_t length;

static void open_stream(int self)
{
    FILE *stream = self == 0 ? open_memstream(&contents, &length) : NULL;
    for (size_t flushed = 10; flushed <= LONG; flushed *= 10) {
        if (stream) {
            for (size_t i = length; i < flushed; i++)
                putc('a' + (int)(i % 26), stream);
            EXPECT(0, fflush(stream));
        }
        pthread_barrier_wait(&ready);
        EXPECT(flushed, length);
        for (size_t i = 0; i < flushed; i++)
            EXPECT('a' + (int)(i % 26), contents[i]);
        pthread_barrier_wait(&ready);
    }
    if (stream)
        EXPECT(0, fclose(stream));
    pthread_barrier_wait(&ready);
    EXPECT(LONG, length);
    EXPECT(LONG, strlen(contents));
    pthread_barrier_wait(&ready);
    if (self == threads - 1)
        free(contents);
}

/* One expression that all threads use at a time: it grows as they do. */
static regex_t together;

static void match_together(int self)
{
    for (int i = 0; i < 200; i++) {
        char text[100];
        int number = i * 7 + self;
        snprintf(text, sizeof text, "%dx%cy%d", number, 'a' + (number % 26), number);
        regmatch_t found[2];
        EXPECT(0, regexec(&together, text, 2, found, 0));
        EXPECT(strchr(text, 'x') - text + 1, found[1].rm_so);
    }
}

/* Each thread allocates in turn, and another reads, resizes and frees. */
static long work(int self)
{
    for (int turn = 0; turn < threads; turn++) {
        if (self == turn) {
            count = 0;
            tree = NULL;
            streams();
            lines();
            texts();
            paths();
            structures();
        }
        pthread_barrier_wait(&ready);
        if (self == (turn + 1) % threads) {
            for (int i = 0; i < count; i++) {
                if (memcmp(given[i].block, given[i].expected, given[i].length))
                    fail("line %d: the block is not as it was", given[i].line);
                char *more = realloc(given[i].block, given[i].length + 1000);
                EXPECT(0, memcmp(more, given[i].expected, given[i].length));
                free(more);
                free(given[i].expected);
            }
            use_structures();
        }
        pthread_barrier_wait(&ready);
    }
    open_stream(self);
    match_together(self);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    EXPECT(0, pthread_barrier_init(&ready, NULL, threads));
    EXPECT(0, regcomp(&together, "[0-9]+x([a-z])y[0-9]*", REG_EXTENDED));
    run_threads(threads, work);
    regfree(&together);
    return pass();
}
