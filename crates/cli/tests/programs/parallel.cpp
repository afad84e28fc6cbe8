// The algorithms of C++17 in parallel, and TBB's own loops and tasks: their results are those of one thread.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <execution>
#include <numeric>
#include <tbb/blocked_range.h>
#include <tbb/concurrent_vector.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_group.h>
#include <vector>

static long fibonacci(int n)
{
    if (n < 12)
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    long first, second;
    tbb::task_group group;
    group.run([&] { first = fibonacci(n - 1); });
    second = fibonacci(n - 2);
    group.wait();
    return first + second;
}

int main()
{
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 4);
    std::vector<uint64_t> numbers(200000);
    std::iota(numbers.begin(), numbers.end(), 1);
    std::for_each(std::execution::par, numbers.begin(), numbers.end(),
                  [](uint64_t &number) { number = number * 6364136223846793005u + 1442695040888963407u; });
    std::sort(std::execution::par, numbers.begin(), numbers.end());
    std::printf("sorted %d, sum %lu\n", std::is_sorted(numbers.begin(), numbers.end()),
                std::reduce(std::execution::par, numbers.begin(), numbers.end(), uint64_t{0}));
    std::vector<uint64_t> sums(numbers.size());
    std::inclusive_scan(std::execution::par, numbers.begin(), numbers.end(), sums.begin());
    std::printf("last %lu, odd %ld\n", sums.back(),
                static_cast<long>(std::count_if(std::execution::par, numbers.begin(), numbers.end(),
                                                [](uint64_t number) { return number & 1; })));

    std::vector<double> values(100000);
    tbb::parallel_for(tbb::blocked_range<size_t>(0, values.size()), [&](const auto &range) {
        for (size_t i = range.begin(); i < range.end(); i++)
            values[i] = static_cast<double>(i % 1000) / 8;
    });
    double total = tbb::parallel_reduce(
        tbb::blocked_range<size_t>(0, values.size()), 0.0,
        [&](const auto &range, double sum) {
            return std::accumulate(values.begin() + range.begin(), values.begin() + range.end(), sum);
        },
        std::plus<>());
    std::printf("total %.3f\n", total);

    std::atomic<long> calls{0};
    tbb::concurrent_vector<int> found;
    tbb::parallel_for(0, 5000, [&](int i) {
        calls++;
        if (i % 7 == 0)
            found.push_back(i);
    });
    std::sort(found.begin(), found.end());
    std::printf("calls %ld, found %zu, last %d, fibonacci %ld\n", calls.load(), found.size(), found.back(), fibonacci(22));
}
