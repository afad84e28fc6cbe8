/* Distances between cities from a file in TSPLIB's format. */
#ifndef APPS_TSPLIB_H
#define APPS_TSPLIB_H

enum { MAX_CITIES = 32 };

/* An instance: `n` cities, symmetric distances. */
struct instance {
    char name[64];
    int n;
    int distance[MAX_CITIES][MAX_CITIES];
};

/* Reads the first `limit` cities (0: all) of the file; on a mistake prints one line and exits with 1.
 *
 * Understood are EXPLICIT weights as FULL_MATRIX, LOWER_DIAG_ROW, UPPER_DIAG_ROW, LOWER_ROW and UPPER_ROW, and the
 * co-ordinates EUC_2D and CEIL_2D, for at most MAX_CITIES cities.
 */
void read_instance(struct instance *to, const char *path, int limit);

#endif
