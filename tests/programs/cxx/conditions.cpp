// std::condition_variable: a bounded queue of strings, and waiting with a limit.
#include "../harness.h"
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

static std::mutex mutex;
static std::condition_variable changed;
static std::deque<std::string> queue;
static int producers;
static long consumed[MAX_THREADS], length_sum[MAX_THREADS];

static void produce(int self)
{
    for (long i = 0; i < iterations; i++) {
        std::string item(static_cast<std::size_t>(1 + (i * 13 + self) % 300), static_cast<char>('a' + i % 26));
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return queue.size() < 10; });
        queue.push_back(std::move(item));
        changed.notify_all();
    }
    std::lock_guard<std::mutex> lock(mutex);
    producers--;
    changed.notify_all();
}

static long consume(int self)
{
    long violations = 0;
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return !queue.empty() || producers == 0; });
        if (queue.empty())
            return violations;
        std::string item = std::move(queue.front());
        queue.pop_front();
        changed.notify_all();
        lock.unlock();
        violations += item.find_first_not_of(item[0]) != std::string::npos;
        consumed[self]++;
        length_sum[self] += static_cast<long>(item.size());
    }
}

static long work(int self)
{
    if (self % 2)
        return consume(self);
    produce(self);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    threads += threads % 2;
    producers = threads / 2;
    long violations = run_threads(threads, work), items = 0, length = 0, expected = 0;
    for (int i = 0; i < threads; i++) {
        items += consumed[i];
        length += length_sum[i];
    }
    for (int self = 0; self < threads; self += 2)
        for (long i = 0; i < iterations; i++)
            expected += 1 + (i * 13 + self) % 300;
    EXPECT(threads / 2 * iterations, items);
    EXPECT(expected, length);
    std::unique_lock<std::mutex> lock(mutex);
    REQUIRE(!changed.wait_for(lock, std::chrono::milliseconds(20), [] { return false; }));
    REQUIRE(changed.wait_until(lock, std::chrono::steady_clock::now()) == std::cv_status::timeout);
    return verdict(violations, "a string was damaged");
}
