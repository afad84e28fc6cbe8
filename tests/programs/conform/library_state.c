/* What the C library keeps for the process is common to all threads: a hash table, a conversion of text, domains of messages, the names of
 * interfaces, what a locale says, the program's own conversions for printf. */
#include "../harness.h"
#include <iconv.h>
#include <langinfo.h>
#include <libintl.h>
#include <locale.h>
#include <net/if.h>
#include <printf.h>
#include <search.h>
#include <syslog.h>
#include <wchar.h>
#include <wctype.h>

static iconv_t conversion;
static struct if_nameindex *interfaces;
static const char *day;
static const wchar_t *wide_day;
static wctype_t letter;
static wctrans_t to_upper;
static const char *format = "%Q"; /* unknown to the compiler */

static int print(FILE *stream, const struct printf_info *info, const void *const *arguments)
{
    (void)info;
    return fprintf(stream, "<%d>", *(const int *)arguments[0]);
}

static int describe(const struct printf_info *info, size_t count, int *types, int *sizes)
{
    (void)info;
    if (count > 0) {
        types[0] = PA_INT;
        sizes[0] = sizeof(int);
    }
    return 1;
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static long use(int self)
{
    char input[] = "\xb4\xc1\xbb\xfa abc", output[32] = "", *from = input, *to = output;
    size_t left = strlen(input), room = sizeof output - 1;
    /* Neither a conversion nor the table may be used by two threads at a time. */
    pthread_mutex_lock(&one_at_a_time);
    EXPECT(0, (long)iconv(conversion, &from, &left, &to, &room));
    EXPECT(0, strcmp(output, "\xe6\xbc\xa2\xe5\xad\x97 abc"));

    ENTRY *found = hsearch((ENTRY){.key = "colour"}, FIND);
    REQUIRE(found && strcmp(found->data, "green") == 0);
    char *name = malloc(32);
    snprintf(name, 32, "thread %d", self);
    REQUIRE(hsearch((ENTRY){.key = name, .data = name}, ENTER));
    pthread_mutex_unlock(&one_at_a_time);

    EXPECT(0, strcmp(textdomain(NULL), "program"));
    EXPECT(0, strcmp(bindtextdomain("program", NULL), "/nowhere"));
    EXPECT(LOG_UPTO(LOG_ERR), setlogmask(0));
    REQUIRE(strlen(interfaces[0].if_name) > 0);

    EXPECT(0, strcmp(day, "Monday"));
    EXPECT(0, wcscmp(wide_day, L"Tuesday"));
    EXPECT(19971130, (int)(intptr_t)nl_langinfo(_NL_TIME_WEEK_1STDAY)); /* a number in place of an address */
    REQUIRE(iswctype(0xe4, letter) && !iswctype(L'1', letter));
    EXPECT(0xc4, towctrans(0xe4, to_upper));
    char text[16];
    snprintf(text, sizeof text, format, self + 10);
    EXPECT(self + 10, strtol(text + 1, NULL, 10));
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    conversion = iconv_open("UTF-8", "EUC-JP");
    REQUIRE(conversion != (iconv_t)-1);
    errno = 0;
    REQUIRE(iconv_open("UTF-8", "no encoding") == (iconv_t)-1);
    EXPECT(EINVAL, errno);
    EXPECT(1, hcreate(20) != 0);
    REQUIRE(hsearch((ENTRY){.key = "colour", .data = "green"}, ENTER));
    EXPECT(0, strcmp(textdomain("program"), "program"));
    EXPECT(0, strcmp(bindtextdomain("program", "/nowhere"), "/nowhere"));
    EXPECT(0, strcmp(gettext("unchanged"), "unchanged"));
    setlogmask(LOG_UPTO(LOG_ERR));
    interfaces = if_nameindex();
    REQUIRE(setlocale(LC_ALL, "C.UTF-8"));
    day = nl_langinfo(DAY_2);
    wide_day = (const wchar_t *)nl_langinfo(_NL_WDAY_3);
    letter = wctype("alpha");
    to_upper = wctrans("toupper");
    EXPECT(0, wctype("no class"));
    EXPECT(0, register_printf_specifier('Q', print, describe));
    REQUIRE(interfaces);
    run_threads(threads, use);
    for (int i = 0; i < threads; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread %d", i);
        ENTRY *found = hsearch((ENTRY){.key = name}, FIND);
        REQUIRE(found && strcmp(found->data, name) == 0);
    }
    hdestroy();
    if_freenameindex(interfaces);
    EXPECT(0, iconv_close(conversion));
    return pass();
}
