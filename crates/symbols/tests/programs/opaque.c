/* Pointers to what another file defines. */
#include "says.h"

struct grid;
typedef struct grid grid_t;
grid_t *grid_new(void);

grid_t *grid;

int main(void)
{
    say_images();
    grid = grid_new();
    printf("pointer\t%lx\tgrid\t24\n", (unsigned long)&grid);
    printf("target\t%lx\t[0].cells[1]\t16\n", (unsigned long)&grid);
    return 0;
}
