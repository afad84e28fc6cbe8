// One pool of memory for threads on all nodes, which keeps a part for each of them.
#include "../harness.h"
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

static std::unique_ptr<std::pmr::synchronized_pool_resource> pool;
static std::vector<std::pmr::map<int, std::pmr::string>> maps;
static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = 0;
    for (int i = 0; i < iterations; i++)
        maps[self][i % 97] += std::pmr::string("x", pool.get()) + std::to_string(i).c_str();
    std::pmr::monotonic_buffer_resource buffer(1000, pool.get());
    std::pmr::vector<int> numbers(&buffer);
    for (int i = 0; i < iterations; i++)
        numbers.push_back(i);
    violations += numbers.back() != iterations - 1;
    pthread_barrier_wait(&barrier);
    // What one thread has allocated another one frees.
    auto &other = maps[(self + 1) % threads];
    for (const auto &entry : other)
        violations += entry.second[0] != 'x';
    pthread_barrier_wait(&barrier);
    other.clear();
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1000);
    EXPECT(0, pthread_barrier_init(&barrier, nullptr, static_cast<unsigned>(threads)));
    long violations = 0;
    for (int round = 0; round < 3; round++) {
        pool = std::make_unique<std::pmr::synchronized_pool_resource>();
        for (int i = 0; i < threads; i++)
            maps.emplace_back(pool.get());
        violations += run_threads(threads, work);
        maps.clear();
        pool.reset();
    }
    return verdict(violations, "memory of a pool was not as written");
}
