// Exceptions leave a library that was opened while the program runs, on every node.
#include "../harness.h"
#include <dlfcn.h>
#include <stdexcept>
#include <string>

static int (*checked)(int);

static long work(int)
{
    long violations = 0, caught = 0;
    for (int value = 0; value < 20; value++) {
        try {
            violations += checked(value) != value + 1;
        } catch (const std::out_of_range &error) {
            caught++;
            violations += error.what() != "too large: " + std::to_string(value);
        }
    }
    return violations + (caught != 9);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    void *library = dlopen("libthrower.so", RTLD_NOW);
    if (!library)
        fail("%s", dlerror());
    checked = reinterpret_cast<int (*)(int)>(dlsym(library, "checked"));
    REQUIRE(checked != nullptr);
    return verdict(run_threads(threads, work), "an exception went wrong");
}
