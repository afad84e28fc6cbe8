/* OpenMP: the functions as Fortran programs with integers of 64 bits call them. */
#include "../harness.h"
#include <omp.h>

#define CHECK(condition, ...) ((condition) ? (void)0 : fail(__VA_ARGS__))

void omp_set_num_threads_8_(const int64_t *);
void omp_set_dynamic_8_(const int64_t *);
void omp_set_nested_8_(const int64_t *);
void omp_set_max_active_levels_8_(const int64_t *);
int32_t omp_get_ancestor_thread_num_8_(const int64_t *);
int32_t omp_get_team_size_8_(const int64_t *);
void omp_set_schedule_8_(const int32_t *, const int64_t *);
void omp_get_schedule_8_(int32_t *, int64_t *);
void omp_fulfill_event_(omp_event_handle_t); /* by value */

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    int64_t count = threads, levels = 1, one = 1, zero = 0, wide = INT64_C(1) << 40, chunk;
    int32_t dynamic = 2, kind;
    omp_set_max_active_levels_8_(&levels);
    omp_set_dynamic_8_(&one);
    CHECK(omp_get_dynamic() == 1, "dynamic");
    omp_set_dynamic_8_(&zero);
    CHECK(omp_get_dynamic() == 0, "not dynamic");
    omp_set_num_threads_8_(&count);
    CHECK(omp_get_max_threads() == threads && omp_get_max_active_levels() == 1, "numbers");
    omp_set_schedule_8_(&dynamic, &wide);
    omp_get_schedule_8_(&kind, &chunk);
    CHECK((kind & 7) == 2 && chunk == INT32_MAX, "schedule %d %ld", kind, (long)chunk);
    int right = 0;
#pragma omp parallel
    {
        int good = omp_get_team_size_8_(&one) == threads && omp_get_ancestor_thread_num_8_(&one) == omp_get_thread_num();
#pragma omp critical
        right += good;
    }
    CHECK(right == threads, "%d threads know their team", right);
    omp_event_handle_t event;
    int ended = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task detach(event)
        ended++;
        omp_fulfill_event_(event);
#pragma omp taskwait
        CHECK(ended == 1, "a task whose event is fulfilled has not ended");
    }
    return pass();
}
