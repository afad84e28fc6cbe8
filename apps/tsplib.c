#include "tsplib.h"

#include "common.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_CITIES = 1000 };

struct header {
    char type[32], edge_type[32], edge_format[32];
    int dimension;
};

/* If `line` is "KEY : value", copies the value. */
static bool keyword(const char *line, const char *key, char *value, size_t room)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0)
        return false;
    line += length;
    while (isspace((unsigned char)*line))
        line++;
    if (*line++ != ':')
        return false;
    while (isspace((unsigned char)*line))
        line++;
    snprintf(value, room, "%s", line);
    value[strcspn(value, " \r\n")] = '\0';
    return true;
}

static double next_number(FILE *f, const char *path)
{
    double value;
    if (fscanf(f, "%lf", &value) != 1)
        die("%s: there are fewer numbers than its dimension asks for", path);
    return value;
}

/* Reads the weights of all cities of the file and keeps those between the first `to->n`. */
static void read_weights(struct instance *to, FILE *f, const char *path, const struct header *h)
{
    const char *format = h->edge_format;
    bool lower = strncmp(format, "LOWER", 5) == 0, upper = strncmp(format, "UPPER", 5) == 0;
    bool diagonal = strstr(format, "_DIAG_") != NULL;
    if (strcmp(format, "FULL_MATRIX") != 0 && strcmp(format, "LOWER_DIAG_ROW") != 0 &&
        strcmp(format, "UPPER_DIAG_ROW") != 0 && strcmp(format, "LOWER_ROW") != 0 && strcmp(format, "UPPER_ROW") != 0)
        die("%s: edge weight format '%s' is not supported", path, format);
    for (int i = 0; i < h->dimension; i++) {
        int first = upper ? i + !diagonal : 0;
        int last = lower ? i + diagonal : h->dimension;
        for (int j = first; j < last; j++) {
            int weight = (int)next_number(f, path);
            if (i < to->n && j < to->n)
                to->distance[i][j] = to->distance[j][i] = weight;
        }
    }
}

static void read_coordinates(struct instance *to, FILE *f, const char *path, const struct header *h)
{
    double x[MAX_CITIES] = {0}, y[MAX_CITIES] = {0};
    bool ceiling = strcmp(h->edge_type, "CEIL_2D") == 0;
    if (!ceiling && strcmp(h->edge_type, "EUC_2D") != 0)
        die("%s: edge weight type '%s' is not supported", path, h->edge_type);
    for (int i = 0; i < h->dimension; i++) {
        next_number(f, path); /* the city's own number */
        double cx = next_number(f, path), cy = next_number(f, path);
        if (i < to->n) {
            x[i] = cx;
            y[i] = cy;
        }
    }
    for (int i = 0; i < to->n; i++)
        for (int j = 0; j < to->n; j++) {
            double d = hypot(x[i] - x[j], y[i] - y[j]);
            to->distance[i][j] = (int)(ceiling ? ceil(d) : d + 0.5);
        }
}

void read_instance(struct instance *to, const char *path, int limit)
{
    FILE *f = fopen(path, "r");
    if (!f)
        die("cannot open %s", path);
    struct header h = {.dimension = 0};
    char line[256], value[64];
    bool done = false;
    memset(to, 0, sizeof *to);
    while (!done && fgets(line, sizeof line, f)) {
        if (keyword(line, "NAME", to->name, sizeof to->name) ||
            keyword(line, "EDGE_WEIGHT_TYPE", h.edge_type, sizeof h.edge_type) ||
            keyword(line, "EDGE_WEIGHT_FORMAT", h.edge_format, sizeof h.edge_format))
            continue;
        if (keyword(line, "TYPE", h.type, sizeof h.type) && strcmp(h.type, "TSP") != 0)
            die("%s: type '%s' is not TSP", path, h.type);
        if (keyword(line, "DIMENSION", value, sizeof value)) {
            h.dimension = atoi(value);
            to->n = limit && limit < h.dimension ? limit : h.dimension;
            if (h.dimension < 3 || h.dimension > MAX_FILE_CITIES || to->n > MAX_CITIES)
                die("%s: its %d cities are not between 3 and %d (see -n)", path, h.dimension, MAX_CITIES);
        }
        bool weights = strncmp(line, "EDGE_WEIGHT_SECTION", 19) == 0;
        bool coordinates = strncmp(line, "NODE_COORD_SECTION", 18) == 0;
        if ((weights || coordinates) && h.dimension == 0)
            die("%s: a section comes before DIMENSION", path);
        if (weights)
            read_weights(to, f, path, &h);
        if (coordinates)
            read_coordinates(to, f, path, &h);
        done = weights || coordinates;
    }
    if (!done)
        die("%s: no section with weights or co-ordinates", path);
    fclose(f);
}
