/* OpenMP: leagues of teams that divide loops, and target regions on the host, as all compilers make them. */
#include "../harness.h"
#include <omp.h>

enum { LENGTH = 1000 };

static long total;
static int squares[LENGTH], chunks[LENGTH], teams_of[LENGTH], chain, steps[20];

static void distribute(void)
{
    int teams = 0;
    memset(teams_of, 0, sizeof teams_of);
#pragma omp teams num_teams(3) thread_limit(64) shared(teams)
    {
#pragma omp distribute
        for (int i = 0; i < LENGTH; i++)
            squares[i] = i * i;
#pragma omp distribute dist_schedule(static, 7)
        for (int i = LENGTH - 1; i >= 0; i -= 3)
            chunks[i] = i + omp_get_num_teams();
#pragma omp parallel
#pragma omp critical
        {
            teams_of[omp_get_team_num()]++;
            teams = omp_get_num_teams();
        }
    }
    EXPECT(3, teams);
    EXPECT(1, omp_get_num_teams());
    for (int i = 0; i < LENGTH; i++) {
        EXPECT(i * i, squares[i]);
        EXPECT((LENGTH - 1 - i) % 3 ? 0 : i + 3, chunks[i]);
        EXPECT(i < 3 ? threads : 0, teams_of[i]);
    }
    long sum = 0;
#pragma omp teams distribute parallel for num_teams(2) reduction(+ : sum) schedule(static, 5)
    for (int i = 0; i < LENGTH; i++)
        sum += squares[i];
    EXPECT(332833500, sum);
}

static void add(long number)
{
#pragma omp atomic
    total += number;
}

/* gcc makes atomic instructions of these, also where several teams run the same one. */
static void sums(void)
{
    total = 0;
#pragma omp teams num_teams(2)
#pragma omp distribute parallel for reduction(+ : total)
    for (int i = 0; i < LENGTH; i++)
        total += squares[i];
    EXPECT(332833500, total);
    total = 0;
#pragma omp parallel for
    for (int i = 0; i < 100; i++)
        add(i);
    EXPECT(4950, total);
    double most = 0;
#pragma omp target teams distribute num_teams(2) map(tofrom : most) reduction(max : most)
    for (int i = 0; i < LENGTH; i++)
        most = squares[i] > most ? squares[i] : most;
    EXPECT(998001, (long)most);
}

static void targets(void)
{
    int value = 1;
    chain = 0;
#pragma omp target map(tofrom : value)
    value += 41;
    EXPECT(42, value);
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < 20; i++) {
#pragma omp target nowait map(tofrom : chain, steps) firstprivate(i) depend(inout : chain)
            {
                chain = (int)((unsigned)chain * 3u + (unsigned)i);
                steps[i] = chain;
            }
        }
#pragma omp taskwait
        int expected = 0;
        for (int i = 0; i < 20; i++) {
            expected = (int)((unsigned)expected * 3u + (unsigned)i);
            EXPECT(expected, steps[i]);
        }
    }
    long sum = 0;
#pragma omp target teams distribute parallel for map(tofrom : sum) reduction(+ : sum)
    for (int i = 0; i < LENGTH; i++)
        sum += i;
    EXPECT(499500, sum);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 5);
    omp_set_num_threads(threads);
    omp_set_dynamic(0);
    for (long i = 0; i < iterations; i++) {
        memset(chunks, 0, sizeof chunks);
        distribute();
        sums();
        targets();
    }
    return pass();
}
