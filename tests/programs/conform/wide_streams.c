/* Wide characters of streams that another thread has opened. */
#include "../harness.h"

#include <locale.h>
#include <unistd.h>
#include <wchar.h>

enum { LINES = 100 };

static FILE *text;
static char path[] = "/tmp/wide_streams.XXXXXX";
static wchar_t *large;
enum { LARGE = 300000 };

static long writes(void)
{
    EXPECT(0, fwide(text, 0));
    REQUIRE(fwide(text, 1) > 0);
    EXPECT(0xe4, fputwc(0xe4, text));
    EXPECT(0x20ac, putwc(0x20ac, text));
    REQUIRE(fputws(L"\u00f6\u4e2d\n", text) >= 0);
    EXPECT(18, fwprintf(text, L"%d %ls %.2f %lc %d %d\n", 7, L"\u00fcb\u00fc", 2.25, 0x3b1, 8, 99));
    EXPECT(0, fflush(text));
    return 0;
}

__attribute__((noinline)) static int prints_list(const wchar_t *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vfwprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

static long writes_more(void)
{
    EXPECT(5, prints_list(L"%s %c\n", "\xc3\xa9t", 'x'));
    EXPECT(3001, fwprintf(text, L"%3000d\n", 5));
    return 0;
}

static long reads(void)
{
    wchar_t line[100], word[20], greek;
    int number, last;
    double real;
    rewind(text);
    EXPECT(0xe4, fgetwc(text));
    EXPECT(0x20ac, getwc(text));
    EXPECT(L'y', ungetwc(L'y', text));
    REQUIRE(fgetws(line, 100, text) == line && wcscmp(line, L"y\u00f6\u4e2d\n") == 0);
    EXPECT(2, fwscanf(text, L"%d %ls", &number, word));
    REQUIRE(number == 7 && wcscmp(word, L"\u00fcb\u00fc") == 0);
    EXPECT(2, fwscanf(text, L"%lf %lc", &real, &greek));
    REQUIRE(real == 2.25 && greek == 0x3b1);
    /* What does not fit stays. */
    EXPECT(1, fwscanf(text, L"%d9%d", &number, &last));
    EXPECT(8, number);
    EXPECT(L' ', fgetwc(text));
    EXPECT(L'9', fgetwc(text));
    EXPECT(L'9', fgetwc(text));
    return fwide(text, 0) > 0;
}

static long reads_rest(void)
{
    wchar_t line[100], *long_line = malloc(4000 * sizeof *long_line);
    REQUIRE(fgetws(line, 100, text) && wcscmp(line, L"\n") == 0);
    REQUIRE(fgetws(line, 3, text) && wcscmp(line, L"\u00e9t") == 0);
    REQUIRE(fgetws(line, 100, text) && wcscmp(line, L" x\n") == 0);
    REQUIRE(fgetws(long_line, 4000, text) && wcslen(long_line) == 3001);
    free(long_line);
    EXPECT(WEOF, fgetwc(text));
    REQUIRE(feof(text) && fgetws(line, 100, text) == NULL);
    EXPECT(EOF, fwscanf(text, L"%ls", line));
    return 0;
}

/* More than fits into a message, and bytes that are no character. */
static long reads_much(void)
{
    REQUIRE(fgetws(large, LARGE + 2, text) == large);
    EXPECT(LARGE + 1, wcslen(large));
    EXPECT(0x20ac, large[LARGE - 1]);
    errno = 0;
    EXPECT(WEOF, fgetwc(text));
    EXPECT(EILSEQ, errno);
    REQUIRE(ferror(text));
    return 0;
}

static long writes_much(void)
{
    for (int i = 0; i < LARGE; i++)
        large[i] = 0x20ac;
    large[LARGE] = L'\n';
    large[LARGE + 1] = 0;
    REQUIRE(fputws(large, text) >= 0);
    EXPECT(0, fflush(text));
    memset(large, 0, (LARGE + 2) * sizeof *large);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(setlocale(LC_ALL, "C.UTF-8"));
    large = malloc((LARGE + 2) * sizeof *large);
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    text = fdopen(file, "w+");
    REQUIRE(text);
    in_new_thread(writes);
    in_new_thread(writes_more);
    EXPECT(true, in_new_thread(reads));
    in_new_thread(reads_rest);
    EXPECT(0, fclose(text));

    text = fopen(path, "w+");
    REQUIRE(text && fwide(text, 1) > 0);
    in_new_thread(writes_much);
    EXPECT(1, pwrite(fileno(text), "\xff", 1, LARGE * 3 + 1));
    rewind(text);
    in_new_thread(reads_much);
    EXPECT(0, fclose(text));

    EXPECT(0, unlink(path));
    return pass();
}
