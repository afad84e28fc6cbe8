/* An array whose pages are on all nodes in turn, so that all memory works for all threads; and where they really are.
 *
 *   cc striped.c $(pkg-config --cflags --libs gondwana) -o striped */
#include <gondwana.h>
#include <stdio.h>

#define PAGES 24

int main(void)
{
    int nodes[PAGES];
    gw_rset *everything = gw_rset_allowed();
    double *array = (double *)gw_alloc(PAGES * gw_page_size(), everything, GW_STRIPED, 2, 0);
    if (!array) {
        fprintf(stderr, "striped: %s\n", gw_error_message());
        return 1;
    }
    /* Something may be in the way of what was asked for: a cpuset, a container, a node that is full. */
    if (*gw_remark())
        fprintf(stderr, "striped: %s\n", gw_remark());

    size_t length = PAGES * gw_page_size() / sizeof *array;
    double sum = 0;
    for (size_t i = 0; i < length; i++)
        array[i] = 1;
    for (size_t i = 0; i < length; i++)
        sum += array[i];

    gw_where(array, length * sizeof *array, nodes, PAGES);
    for (int page = 0; page < PAGES; page++)
        printf("%d", nodes[page]);
    printf("\n%.0f numbers, %ld pages elsewhere than asked for\n", sum, gw_misplaced(array));

    gw_free(array);
    gw_rset_free(everything);
    return 0;
}
