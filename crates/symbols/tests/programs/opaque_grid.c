/* Defines it. */
#include <stdlib.h>

struct grid {
    int width, height;
    double cells[2];
};

struct grid *grid_new(void)
{
    return malloc(sizeof(struct grid));
}
