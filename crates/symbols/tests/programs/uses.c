/* Uses the library. */
#include "says.h"

int library_call(int by);

int main(int argc, char **argv)
{
    (void)argv;
    say_images();
    return library_call(argc) == 0;
}
