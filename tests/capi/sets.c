/* The algebra of sets, their texts and their names. XDG_STATE_HOME is an empty folder. */
#define _GNU_SOURCE
#include "check.h"

/* The set is what this text says. */
static int is(gw_rset *set, const char *text)
{
    gw_rset *expected = parsed(text);
    CHECK(set);
    int equal = gw_rset_equal(set, expected);
    CHECK(gw_rset_contains(set, expected) >= equal && gw_rset_contains(expected, set) >= equal);
    CHECK(gw_rset_free(expected) == 0 && gw_rset_free(set) == 0);
    return equal;
}

static void sets_are_combined(void)
{
    gw_rset *all = gw_rset_all(), *none = parsed("none"), *processor = parsed("proc:0"), *memory = parsed("mem:0");
    CHECK(is(gw_rset_union(processor, memory), "proc:0|mem:0"));
    CHECK(is(gw_rset_intersection(all, memory), "mem:0"));
    CHECK(is(gw_rset_difference(all, all), "none"));
    CHECK(is(gw_rset_difference(processor, memory), "proc:0"));
    CHECK(!is(gw_rset_union(processor, memory), "proc:0"));
    CHECK(is(gw_rset_of_node(0), "node:0"));
    CHECK(gw_rset_contains(all, processor) == 1 && gw_rset_contains(processor, all) == 0);
    CHECK(gw_rset_contains(processor, none) == 1 && gw_rset_is_empty(none) == 1 && gw_rset_is_empty(memory) == 0);
    CHECK(gw_rset_equal(memory, memory) == 1 && gw_rset_equal(memory, processor) == 0);
    gw_rset_free(all), gw_rset_free(none), gw_rset_free(processor), gw_rset_free(memory);
}

static void sets_are_counted_and_listed(void)
{
    int numbers[4] = {7, 7, 7, 7};
    gw_rset *set = parsed("proc:0|mem:0"), *all = gw_rset_all();
    CHECK(gw_rset_processors(set, numbers, 4) == 1 && numbers[0] == 0 && numbers[1] == 7);
    CHECK(gw_rset_memory(set, numbers + 1, 1) == 1 && numbers[1] == 0);
    CHECK(gw_rset_processors(all, NULL, 0) >= 1 && gw_rset_processors(all, numbers + 3, 1) >= 1);
    CHECK(numbers[2] == 7 && numbers[3] == 0);
    gw_rset_free(set), gw_rset_free(all);
}

static void texts_are_cut_where_room_ends(void)
{
    char text[16] = "???????????????";
    gw_rset *set = parsed(" cpu:0 & proc:0 | mem:0 ");
    CHECK(gw_rset_text(set, text, sizeof text) == 12 && strcmp(text, "proc:0|mem:0") == 0);
    CHECK(gw_rset_text(set, NULL, 0) == 12);
    CHECK(gw_rset_text(set, text, 5) == 12 && strcmp(text, "proc") == 0 && text[5] == '0');
    gw_rset_free(set);
}

static void names_are_kept(void)
{
    char names[32];
    gw_rset *set = parsed("proc:0|mem:0"), *part = parsed("proc:0"), *none = parsed("none");
    CHECK(gw_rset_names(NULL, names, sizeof names) == 0 && *names == 0);
    CHECK(gw_rset_name("web", set, NULL, GW_EXCLUSIVE) == 0);
    CHECK(gw_rset_name("batch", part, "web", 0) == 0);
    CHECK(gw_rset_names(NULL, names, sizeof names) == 4 && strcmp(names, "web\n") == 0);
    CHECK(gw_rset_names("web", names, sizeof names) == 6 && strcmp(names, "batch\n") == 0);
    CHECK(is(gw_rset_parse("web - batch"), "mem:0"));
    REFUSES(gw_rset_name("web", set, NULL, 0), EEXIST, "'web'");
    REFUSES(gw_rset_name("more", set, "batch", 0), EINVAL, "'batch' doesn't contain mem:0");
    REFUSES(gw_rset_name("rival", part, NULL, GW_EXCLUSIVE), EINVAL, "'rival' and 'web' are exclusive");
    REFUSES(gw_rset_name("orphan", part, "nobody", 0), ENOENT, "'nobody'");
    REFUSES(gw_rset_name("node", part, NULL, 0), EINVAL, "'node'");
    REFUSES(gw_rset_name("a b", part, NULL, 0), EINVAL, "'a b'");
    REFUSES(gw_rset_name("empty", none, NULL, 0), EINVAL, "'empty' would be empty");
    REFUSES(gw_rset_name("flags", part, NULL, GW_STRICT), EINVAL, "flags 0x2");
    REFUSES(gw_rset_forget("web"), EBUSY, "'batch'");
    REFUSES(gw_rset_forget("nobody"), ENOENT, "'nobody'");
    REFUSES(gw_rset_names("nobody", names, sizeof names), ENOENT, "'nobody'");
    CHECK(gw_rset_forget("batch") == 0 && gw_rset_forget("web") == 0);
    FAILS(gw_rset_parse("web"), EINVAL, "there is no set named 'web', at character 1 of \"web\"");
    gw_rset_free(set), gw_rset_free(part), gw_rset_free(none);
}

int main(void)
{
    sets_are_combined();
    sets_are_counted_and_listed();
    texts_are_cut_where_room_ends();
    names_are_kept();
    puts("sets");
    return 0;
}
