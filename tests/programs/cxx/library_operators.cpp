/* A library defines malloc, free and the operators new and delete, as jemalloc does: threads of all nodes share what `new` gives, and
 * free what others have. */
#include "../harness.h"
#include <memory>
#include <string>
#include <vector>

static pthread_barrier_t barrier;
static std::vector<std::unique_ptr<std::string>> strings;
static long *numbers[64];

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        auto text = std::make_unique<std::string>(40 + (std::size_t)self, (char)('a' + self));
        *text += std::to_string(round);
        strings[(std::size_t)self] = std::move(text);
        numbers[self] = new long[100]{self, round};
        pthread_barrier_wait(&barrier);
        int other = (self + 1) % threads;
        std::string expected(40 + (std::size_t)other, (char)('a' + other));
        violations += *strings[(std::size_t)other] != expected + std::to_string(round);
        violations += numbers[other][0] != other || numbers[other][1] != round;
        delete[] numbers[other];
        /* A block of another size than the first, which the sized form frees. */
        std::unique_ptr<std::string> old = std::move(strings[(std::size_t)other]);
        old->assign(200, 'z');
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 20);
    REQUIRE(threads <= 20);
    strings.resize((std::size_t)threads);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    EXPECT(0, run_threads(threads, work));
    strings.clear();
    return pass();
}
