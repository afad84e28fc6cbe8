/* OpenMP: places, and what shows where threads run. */
#include "../harness.h"
#include <omp.h>

#define MOST 4096

/* The calling thread is in a place, and no processor is in two. */
static void look(int places)
{
    const int place = omp_get_place_num();
    REQUIRE(place >= 0 && place < places);
    const int part = omp_get_partition_num_places();
    REQUIRE(part > 0 && part <= places);
    int numbers[MOST], ids[MOST];
    static bool seen[MOST];
    omp_get_partition_place_nums(numbers);
    for (int i = 0; i < part; i++)
        REQUIRE(numbers[i] >= 0 && numbers[i] < places);
    EXPECT(0, omp_get_place_num_procs(-1));
    EXPECT(0, omp_get_place_num_procs(places));
#pragma omp critical
    {
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < places; i++) {
            const int count = omp_get_place_num_procs(i);
            REQUIRE(count > 0 && count <= MOST);
            omp_get_place_proc_ids(i, ids);
            for (int j = 0; j < count; j++) {
                REQUIRE(ids[j] >= 0 && ids[j] < MOST && !seen[ids[j]]);
                seen[ids[j]] = true;
            }
        }
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    char text[200];
    const int places = omp_get_num_places();
    if (getenv("OMP_PLACES")) {
        REQUIRE(places > 0 && places <= MOST && omp_get_proc_bind() != omp_proc_bind_false);
        if (getenv("SHOW_PLACES"))
            printf("%d places, way %d\n", places, (int)omp_get_proc_bind());
#pragma omp parallel proc_bind(spread)
        look(places);
    } else {
        EXPECT(0, places);
        EXPECT(-1, omp_get_place_num());
        EXPECT(omp_proc_bind_false, omp_get_proc_bind());
    }
    omp_set_affinity_format("<%0.3n of %{num_threads}|%4L|%.4{ancestor_tnum}%%>");
    EXPECT(50, omp_get_affinity_format(text, 10));
    EXPECT(0, strcmp(text, "<%0.3n of"));
#pragma omp parallel private(text)
    {
        char expected[200];
        snprintf(expected, sizeof expected, "<%03d of %d|1   |   0%%>", omp_get_thread_num(), omp_get_num_threads());
        EXPECT(strlen(expected), omp_capture_affinity(text, sizeof text, NULL));
        EXPECT(0, strcmp(text, expected));
        EXPECT(strlen(expected), omp_capture_affinity(text, 5, ""));
        REQUIRE(strncmp(text, expected, 4) == 0 && text[4] == '\0');
        REQUIRE(omp_capture_affinity(text, sizeof text, "%A on %H in %P: %i") > 10);
    }
    return pass();
}
