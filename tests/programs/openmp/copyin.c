/* OpenMP: threadprivate variables of all sizes that threads copy from those of the main thread. */
#include "../harness.h"
#include <omp.h>

struct record {
    double numbers[100];
    const char *name;
    int *list;
};

static struct record record;
static int table[5000] = {7};
static int number = 3;
static double half;
static char letters[3];
static int kept; /* is not copied */
#pragma omp threadprivate(record, table, number, half, letters, kept)

static int results[MAX_THREADS][8];

/* Changes the main thread's variables, and has all threads copy and change theirs. */
static void round_of(int round)
{
    int *list = malloc(100 * sizeof *list);
    for (int i = 0; i < 100; i++) {
        list[i] = round * i;
        record.numbers[i] = round + i * 0.5;
    }
    record.name = round % 2 ? "odd" : "even";
    record.list = list;
    for (int i = round % 3; i < 5000; i += 3)
        table[i] = round + i;
    number = round * 5;
    half = round * 0.5;
    letters[round % 3] = (char)('a' + round % 26);
    const int expected[] = {table[0], table[1], table[2], table[4999]};
    const char first = letters[0], second = letters[1], third = letters[2];
#pragma omp parallel copyin(record, table, number, half, letters)
    {
        const int me = omp_get_thread_num();
        int wrong = 0;
        wrong += table[0] != expected[0] || table[1] != expected[1] || table[2] != expected[2];
        wrong += table[4999] != expected[3];
        wrong += number != round * 5 || half != round * 0.5;
        wrong += letters[0] != first || letters[1] != second || letters[2] != third;
        for (int i = 0; i < 100; i++)
            wrong += record.numbers[i] != round + i * 0.5 || record.list[i] != round * i;
        wrong += strcmp(record.name, round % 2 ? "odd" : "even") != 0;
        results[me][0] = wrong;
        table[0] = me;
        number = me;
        record.numbers[3] = me;
        if (round == 0)
            kept = me;
    }
    int seen = 0;
    /* Without copyin each thread finds what it left. */
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
        results[me][1] = table[0] != me || number != me || record.numbers[3] != me || kept != me;
#pragma omp critical
        seen++;
    }
    EXPECT(threads, seen);
    for (int i = 0; i < threads; i++) {
        if (results[i][0] || results[i][1])
            fail("in round %d thread %d has copied %d wrong values and kept %d", round, i, results[i][0],
                 results[i][1]);
    }
    free(list);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    for (int i = 0; i < iterations; i++)
        round_of(i);
    return pass();
}
