// Standard containers filled by threads, each under its own mutex, and read by other threads after a join.
#include "../harness.h"
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

static std::mutex mutex[4];
static std::vector<std::string> strings;
static std::unordered_map<long, std::vector<long>> multiples;
static std::set<std::pair<int, long>> pairs;
static std::list<std::unique_ptr<std::string>> owned;

static long fill(int self)
{
    for (long i = 0; i < iterations; i++) {
        std::lock(mutex[0], mutex[1]);
        std::unique_lock<std::mutex> a(mutex[0], std::adopt_lock), b(mutex[1], std::adopt_lock);
        strings.push_back(std::to_string(self) + "/" + std::to_string(i));
        multiples[i % 17].push_back(i * threads + self);
        a.unlock();
        b.unlock();
        std::lock_guard<std::mutex> c(mutex[2]), d(mutex[3]);
        pairs.insert({self, i});
        owned.push_back(std::make_unique<std::string>(static_cast<std::size_t>(i % 100), '*'));
    }
    return 0;
}

static long verify(int self)
{
    long violations = 0, count = 0;
    for (const auto &entry : multiples)
        for (long value : entry.second)
            violations += value / threads % 17 != entry.first;
    for (const std::string &s : strings)
        count += s.substr(0, s.find('/')) == std::to_string(self);
    violations += count != iterations;
    for (long i = 0; i < iterations; i++)
        violations += pairs.count({self, i}) != 1;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    run_threads(threads, fill);
    long violations = run_threads(threads, verify), stars = 0;
    for (const auto &s : owned)
        stars += static_cast<long>(s->size());
    long expected = 0;
    for (long i = 0; i < iterations; i++)
        expected += i % 100 * threads;
    EXPECT(expected, stars);
    std::sort(strings.begin(), strings.end());
    REQUIRE(std::unique(strings.begin(), strings.end()) == strings.end());
    EXPECT(threads * iterations, strings.size());
    return verdict(violations, "a container was wrong");
}
