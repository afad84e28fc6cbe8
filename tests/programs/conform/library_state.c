/* What the C library keeps for the process is common to all threads: a hash table, a conversion of text, domains of messages, the names of
 * interfaces. */
#include "../harness.h"
#include <iconv.h>
#include <libintl.h>
#include <net/if.h>
#include <search.h>
#include <syslog.h>

static iconv_t conversion;
static struct if_nameindex *interfaces;

static long use(int self)
{
    char input[] = "\xb4\xc1\xbb\xfa abc", output[32] = "", *from = input, *to = output;
    size_t left = strlen(input), room = sizeof output - 1;
    EXPECT(0, (long)iconv(conversion, &from, &left, &to, &room));
    EXPECT(0, strcmp(output, "\xe6\xbc\xa2\xe5\xad\x97 abc"));

    ENTRY *found = hsearch((ENTRY){.key = "colour"}, FIND);
    REQUIRE(found && strcmp(found->data, "green") == 0);
    char *name = malloc(32);
    snprintf(name, 32, "thread %d", self);
    REQUIRE(hsearch((ENTRY){.key = name, .data = name}, ENTER));

    EXPECT(0, strcmp(textdomain(NULL), "program"));
    EXPECT(0, strcmp(bindtextdomain("program", NULL), "/nowhere"));
    EXPECT(LOG_UPTO(LOG_ERR), setlogmask(0));
    REQUIRE(strlen(interfaces[0].if_name) > 0);
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
