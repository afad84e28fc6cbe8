/* A library with a variable that is its own and one for all. */
#include "says.h"

struct shared {
    int count;
    double values[4];
};

struct shared library_shared;
static struct shared library_own;

__attribute__((noinline)) int library_call(int by)
{
    library_own.count += by;
    SAY(library_shared.values[3]);
    SAY(library_own.values[1]);
    SAY_HERE("library_call");
    return library_own.count;
}
