// std::async, std::future, std::promise, std::packaged_task, shared futures, exceptions through them.
#include "../harness.h"
#include <future>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static long sum(const std::vector<int> &v, std::size_t from, std::size_t to)
{
    if (to - from < 1000)
        return std::accumulate(v.begin() + static_cast<long>(from), v.begin() + static_cast<long>(to), 0L);
    std::size_t middle = (from + to) / 2;
    auto left = std::async(std::launch::async, sum, std::cref(v), from, middle);
    long right = sum(v, middle, to);
    return left.get() + right;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    std::vector<int> numbers(6000);
    std::iota(numbers.begin(), numbers.end(), 1);
    EXPECT(6000L * 6001 / 2, sum(numbers, 0, numbers.size()));

    auto failing = std::async(std::launch::async, []() -> int { throw std::out_of_range("by design"); });
    std::string what;
    try {
        failing.get();
    } catch (const std::out_of_range &e) {
        what = e.what();
    }
    REQUIRE(what == "by design");

    std::promise<std::string> promise;
    std::shared_future<std::string> shared = promise.get_future().share();
    std::vector<std::thread> readers;
    std::vector<std::size_t> lengths(static_cast<std::size_t>(threads));
    for (std::size_t i = 0; i < lengths.size(); i++)
        readers.emplace_back([shared, &lengths, i] { lengths[i] = shared.get().size(); });
    promise.set_value(std::string(5000, 'x'));
    for (std::thread &t : readers)
        t.join();
    for (std::size_t length : lengths)
        EXPECT(5000, length);

    std::packaged_task<int(int)> task([](int x) { return x * x; });
    std::future<int> square = task.get_future();
    std::thread(std::move(task), 12).join();
    EXPECT(144, square.get());
    auto deferred = std::async(std::launch::deferred, [] { return 3; });
    EXPECT(3, deferred.get());
    return pass();
}
