// std::mutex, recursive_mutex, timed_mutex, shared_mutex and their guards around shared containers.
#include "../harness.h"
#include <chrono>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

static std::mutex plain;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::shared_mutex shared;
static std::map<std::string, long> counts;
static long depth_sum, timed_sum, shared_value[2];

static void descend(int depth)
{
    std::lock_guard<std::recursive_mutex> guard(recursive);
    depth_sum += depth;
    if (depth > 0)
        descend(depth - 1);
}

static long work(int self)
{
    long violations = 0;
    for (long i = 0; i < iterations; i++) {
        {
            std::lock_guard<std::mutex> guard(plain);
            counts["key number " + std::to_string(i % 50)] += self + 1;
        }
        descend(3);
        if (timed.try_lock_for(std::chrono::minutes(1))) {
            timed_sum++;
            timed.unlock();
        }
        if (i % 5 == 0) {
            std::unique_lock<std::shared_mutex> guard(shared);
            shared_value[0]++;
            shared_value[1]++;
        } else {
            std::shared_lock<std::shared_mutex> guard(shared);
            violations += shared_value[0] != shared_value[1];
        }
        std::scoped_lock both(plain, timed);
        timed_sum++;
    }
    return violations;
}

static long cannot_get(int)
{
    REQUIRE(!plain.try_lock());
    REQUIRE(!timed.try_lock_for(std::chrono::milliseconds(20)));
    REQUIRE(!shared.try_lock_shared());
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    long violations = run_threads(threads, work), total = 0;
    for (const auto &entry : counts)
        total += entry.second;
    EXPECT(iterations * threads * (threads + 1) / 2, total);
    EXPECT(iterations * threads * 6, depth_sum);
    EXPECT(iterations * threads * 2, timed_sum);
    std::scoped_lock all(plain, timed, shared);
    run_threads(1, cannot_get);
    return verdict(violations, "a reader saw half an update");
}
