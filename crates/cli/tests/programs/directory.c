/* Goes to a directory, and prints what came of it and where it is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char place[4096];
    int result = count == 2 ? chdir(arguments[1]) : -2;
    const char *why = result == -1 ? strerror(errno) : "went";
    printf("%s: %s\n", why, getcwd(place, sizeof place));
    return 0;
}
