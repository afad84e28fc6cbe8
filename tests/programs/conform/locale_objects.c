/* A locale object means the same in every thread, whichever has made it, and ends when any thread frees it. */
#include "../harness.h"
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#include <wctype.h>
#include <ctype.h>

static locale_t made, copied, extended;

static long make(void)
{
    made = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return made == (locale_t)0;
}

static long copy(void)
{
    copied = duplocale(made);
    return copied == (locale_t)0;
}

static long unknown(void)
{
    return newlocale(LC_ALL_MASK, "xx_YY.unknown", (locale_t)0) == (locale_t)0;
}

/* How many characters two bytes of UTF-8 are. */
static long characters(void)
{
    wchar_t wide[8];
    mbstate_t state;
    const char *text = "\303\244";
    memset(&state, 0, sizeof state);
    size_t count = mbsrtowcs(wide, &text, 8, &state);
    return count == (size_t)-1 ? -1 : (long)count;
}

/* The thread's own locale is the object, and does not outlive its use. */
static long use(void)
{
    EXPECT(1, uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    EXPECT(-1, characters());
    EXPECT(1, uselocale(made) == LC_GLOBAL_LOCALE);
    EXPECT(1, uselocale((locale_t)0) == made);
    EXPECT(1, characters());
    EXPECT(0, strcmp(nl_langinfo(CODESET), "UTF-8"));
    EXPECT(1, uselocale(copied) == made);
    EXPECT(1, characters());
    EXPECT(1, uselocale(LC_GLOBAL_LOCALE) == copied);
    EXPECT(-1, characters());
    return 0;
}

/* Functions that take an object. */
static long pass_on(void)
{
    EXPECT(0, strcmp(nl_langinfo_l(CODESET, made), "UTF-8"));
    EXPECT(0, strcmp(nl_langinfo_l(CODESET, copied), "UTF-8"));
    EXPECT(0x3b1, towlower_l(0x391, made));
    EXPECT(1, !!isalpha_l('x', copied));
    EXPECT('Q', toupper_l('q', made));
    EXPECT(1, strtod_l("2.5", NULL, made) == 2.5);
    EXPECT(1, strcoll_l("a", "b", copied) < 0);
    return 0;
}

static long extend(void)
{
    extended = newlocale(LC_NUMERIC_MASK, "C", extended);
    return extended == (locale_t)0;
}

static long use_extended(void)
{
    EXPECT(1, uselocale(extended) == LC_GLOBAL_LOCALE);
    long count = characters();
    uselocale(LC_GLOBAL_LOCALE);
    return count;
}

static long end(void)
{
    freelocale(made);
    freelocale(copied);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    for (int i = 0; i < iterations; i++) {
        EXPECT(0, in_new_thread(make));
        EXPECT(0, in_new_thread(copy));
        EXPECT(1, in_new_thread(unknown));
        for (int j = 0; j < threads; j++) {
            EXPECT(0, in_new_thread(use));
            EXPECT(0, in_new_thread(pass_on));
        }
        EXPECT(0, use());
        extended = duplocale(copied);
        for (int j = 0; j < threads; j++) {
            EXPECT(0, in_new_thread(extend));
            EXPECT(1, in_new_thread(use_extended));
        }
        freelocale(extended);
        EXPECT(0, in_new_thread(end));
    }
    return pass();
}
