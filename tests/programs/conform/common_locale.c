/* The locale and the time zone are the process's, and the texts that name them can be read anywhere. */
#include "../harness.h"
#include <locale.h>
#include <time.h>
#include <wchar.h>
#include <langinfo.h>

static const char *name, *zone;
static struct tm broken_down;
static const time_t summer = 1751328000; /* 1 July 2025 */
static const char *const zones[] = {"EST5EDT,M3.2.0,M11.1.0", "CET-1CEST,M3.5.0,M10.5.0/3", "UTC0", "XYZ-9"};
static const int hours[] = {20, 2, 0, 9};
static const char *const names[] = {"EDT", "CEST", "UTC", "XYZ"};

static long set_utf8(void)
{
    name = setlocale(LC_CTYPE, "C.UTF-8");
    return name == NULL;
}

static long set_c(void)
{
    name = setlocale(LC_ALL, "C");
    return name == NULL;
}

static long set_unknown(void)
{
    return setlocale(LC_ALL, "xx_YY.unknown") == NULL;
}

/* How many characters two bytes of UTF-8 are. */
static long characters(void)
{
    wchar_t wide[8];
    return mbstowcs(wide, "\303\244", 8);
}

static long name_is_utf8(void)
{
    return strcmp(name, "C.UTF-8") == 0 && strcmp(setlocale(LC_CTYPE, NULL), "C.UTF-8") == 0 &&
           strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int turn;

static long set_zone(void)
{
    EXPECT(0, setenv("TZ", zones[turn], 1));
    tzset();
    zone = tzname[turn < 2];
    return 0;
}

static long convert(void)
{
    EXPECT(1, localtime_r(&summer, &broken_down) == &broken_down);
    return broken_down.tm_hour;
}

static long compare(void)
{
    char text[32];
    strftime(text, sizeof text, "%Z", &broken_down);
    return strcmp(text, names[turn]) == 0 && strcmp(broken_down.tm_zone, names[turn]) == 0 &&
           strcmp(zone, names[turn]) == 0 && strcmp(tzname[turn < 2], names[turn]) == 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 3);
    EXPECT(0, in_new_thread(set_c));
    for (int i = 0; i < iterations; i++) {
        EXPECT(0, in_new_thread(set_utf8));
        for (int j = 0; j < threads; j++) {
            EXPECT(1, in_new_thread(characters));
            EXPECT(1, in_new_thread(name_is_utf8));
            EXPECT(1, in_new_thread(set_unknown));
        }
        EXPECT(1, name_is_utf8());
        EXPECT(0, in_new_thread(set_c));
    }
    for (turn = 0; turn < 4; turn++) {
        EXPECT(0, in_new_thread(set_zone));
        for (int j = 0; j < threads; j++) {
            EXPECT(hours[turn], in_new_thread(convert));
            EXPECT(1, in_new_thread(compare));
            EXPECT(1, compare());
        }
    }
    return pass();
}
