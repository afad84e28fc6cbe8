/* system() and popen(), before there are threads, in threads, and after. */
#include "../harness.h"
#include <sys/wait.h>

static void use(void)
{
    int status = system("exit 3");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    EXPECT(0, system("test $((6 * 7)) = 42"));
    FILE *pipe = popen("echo one; echo two", "r");
    REQUIRE(pipe);
    char *line = malloc(100);
    REQUIRE(fgets(line, 100, pipe) && strcmp(line, "one\n") == 0);
    REQUIRE(fgets(line, 100, pipe) && strcmp(line, "two\n") == 0);
    REQUIRE(!fgets(line, 100, pipe));
    EXPECT(0, pclose(pipe));
    free(line);
}

static long work(int self)
{
    (void)self;
    use();
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 3, 1);
    use();
    run_threads(threads, work);
    use();
    return pass();
}
