/* What a function of the C library keeps in memory of its own, one thread may leave to another to read; and strtok goes on where any
 * thread has left off. */
#include "../harness.h"
#include <arpa/inet.h>
#include <grp.h>
#include <langinfo.h>
#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>

static struct tm *broken_down;
static char *date, *error, *unknown_error, *real_time, *address, *token, *radix;
static struct passwd *user;
static struct group *group;
static struct lconv *conventions;
static char list[] = "one,two,three,four,five,six,seven,eight,nine";
static const char *const names[] = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
static const time_t moments[] = {0, 1751328000, 86399};
static int turn;

static long ask(void)
{
    const time_t *moment = &moments[turn % 3];
    broken_down = turn % 2 ? gmtime(moment) : localtime(moment);
    date = turn % 2 ? asctime(broken_down) : ctime(moment);
    error = strerror(ENOENT);
    real_time = strsignal(SIGSEGV);
    radix = nl_langinfo(RADIXCHAR);
    conventions = localeconv();
    return 0;
}

static long ask_for_entries(void)
{
    user = getpwuid(0);
    group = turn % 2 ? getgrgid(0) : getgrnam("root");
    return 0;
}

static long read_results(void)
{
    char text[64];
    EXPECT(moments[turn % 3] % 60, broken_down->tm_sec);
    EXPECT(moments[turn % 3] / 60 % 60, broken_down->tm_min);
    EXPECT(moments[turn % 3] / 3600 % 24, broken_down->tm_hour);
    EXPECT(0, strcmp(broken_down->tm_zone, turn % 2 ? "GMT" : "UTC"));
    EXPECT(0, strcmp(date, asctime_r(broken_down, text)));
    EXPECT(0, strcmp(error, "No such file or directory"));
    snprintf(text, sizeof text, "Unknown error %d", 4000 + turn);
    EXPECT(0, strcmp(unknown_error, text));
    snprintf(text, sizeof text, "10.0.0.%d", 1 + turn);
    EXPECT(0, strcmp(address, text));
    EXPECT(0, strcmp(real_time, "Segmentation fault"));
    EXPECT(0, strcmp(radix, "."));
    EXPECT(0, strcmp(conventions->decimal_point, "."));
    EXPECT(0, strcmp(conventions->negative_sign, ""));
    return 0;
}

static long read_entries(void)
{
    EXPECT(0, strcmp(user->pw_name, "root"));
    EXPECT('/', user->pw_dir[0]);
    EXPECT(0, user->pw_uid);
    EXPECT(0, strcmp(group->gr_name, "root"));
    EXPECT(0, group->gr_gid);
    int members = 0;
    while (group->gr_mem[members] != NULL)
        members++;
    return members;
}

static long next_token(void)
{
    token = strtok(turn ? NULL : list, ",");
    return token == NULL;
}

static long token_is_right(void)
{
    return strcmp(token, names[turn]) == 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 6);
    EXPECT(0, setenv("TZ", "UTC", 1));
    tzset();
    for (turn = 0; turn < iterations; turn++) {
        EXPECT(0, in_new_thread(ask));
        EXPECT(0, in_new_thread(ask_for_entries));
        unknown_error = strerror(4000 + turn); /* the text is the thread's */
        struct in_addr number = {htonl(0x0a000001u + (unsigned)turn)};
        address = inet_ntoa(number); /* so is this one */
        int members = (int)read_entries();
        for (int i = 0; i < threads; i++) {
            EXPECT(0, in_new_thread(read_results));
            EXPECT(members, in_new_thread(read_entries));
        }
        EXPECT(0, read_results());
    }
    for (turn = 0; turn < 9; turn++) {
        EXPECT(0, turn % 4 == 3 ? next_token() : in_new_thread(next_token));
        EXPECT(1, in_new_thread(token_is_right));
    }
    EXPECT(1, in_new_thread(next_token));
    return pass();
}
