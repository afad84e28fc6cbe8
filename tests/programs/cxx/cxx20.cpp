// What C++20 adds for threads: latches, barriers, semaphores, threads that are asked to stop, waiting for atomic objects,
// shared pointers that are atomic, and streams that several threads write to.
#include "../harness.h"
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <queue>
#include <semaphore>
#include <sstream>
#include <stop_token>
#include <string>
#include <syncstream>
#include <thread>
#include <utility>
#include <vector>

// Threads that are asked to stop while they wait for something to do.
class Pool {
public:
    explicit Pool(int count)
    {
        for (int i = 0; i < count; i++)
            workers.emplace_back([this](std::stop_token stop) { serve(stop); });
    }

    void add(std::function<void()> task)
    {
        std::lock_guard guard(mutex);
        tasks.push(std::move(task));
        added.notify_one();
    }

private:
    void serve(std::stop_token stop)
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock guard(mutex);
                if (!added.wait(guard, stop, [this] { return !tasks.empty(); }))
                    return;
                task = std::move(tasks.front());
                tasks.pop();
            }
            task();
        }
    }

    std::mutex mutex;
    std::condition_variable_any added;
    std::queue<std::function<void()>> tasks;
    std::vector<std::jthread> workers;
};

// Its destructor runs at the end of each thread that has used it.
struct Counted {
    static inline std::atomic<long> ended;
    long uses = 0;
    ~Counted() { ended += uses; }
};

static thread_local Counted counted;

static void pools()
{
    std::atomic<long> sum = 0;
    std::latch done(iterations);
    {
        Pool pool(threads);
        for (long i = 0; i < iterations; i++)
            pool.add([&sum, &done, i] {
                sum += i;
                counted.uses++;
                done.count_down();
            });
        done.wait();
    }
    EXPECT(iterations * (iterations - 1) / 2, sum);
    EXPECT(iterations, Counted::ended);
}

static void barriers()
{
    std::vector<long> parts(static_cast<std::size_t>(threads));
    long total = 0, phases = 0;
    auto next = [&]() noexcept {
        for (long part : parts)
            total += part;
        phases++;
    };
    std::barrier phase(threads, next);
    std::vector<std::jthread> team;
    for (int self = 0; self < threads; self++)
        team.emplace_back([&, self] {
            for (long i = 0; i < iterations; i++) {
                parts[static_cast<std::size_t>(self)] = i * (self + 1);
                phase.arrive_and_wait();
            }
        });
    team.clear();
    EXPECT(iterations, phases);
    EXPECT(iterations * (iterations - 1) / 2 * threads * (threads + 1) / 2, total);
}

// A bounded queue for each pair of threads. In libstdc++ 12 two threads that wait for one semaphore can sleep for ever
// (its bug 104928), also natively.
struct Channel {
    static constexpr std::ptrdiff_t ROOM = 4;
    std::counting_semaphore<ROOM> free{ROOM}, used{0};
    std::mutex mutex;
    std::queue<std::string> queue;

    void put(std::string text)
    {
        free.acquire();
        {
            std::lock_guard guard(mutex);
            queue.push(std::move(text));
        }
        used.release();
    }

    std::string take()
    {
        used.acquire();
        std::unique_lock guard(mutex);
        std::string text = std::move(queue.front());
        queue.pop();
        guard.unlock();
        free.release();
        return text;
    }
};

static void semaphores()
{
    std::vector<Channel> channels(static_cast<std::size_t>(threads / 2));
    std::atomic<long> bytes = 0;
    std::vector<std::jthread> team;
    for (int self = 0; self < threads; self++)
        team.emplace_back([&, self] {
            Channel &channel = channels[static_cast<std::size_t>(self / 2)];
            for (long i = 0; i < iterations; i++) {
                if (self % 2 == 0)
                    channel.put(std::string(static_cast<std::size_t>(i % 50), 'x'));
                else
                    bytes += static_cast<long>(channel.take().size());
            }
        });
    team.clear();
    long expected = 0;
    for (long i = 0; i < iterations; i++)
        expected += i % 50 * (threads / 2);
    EXPECT(expected, bytes);
}

// A list whose head is replaced as a whole; and threads that wait until a number changes.
static void atomics()
{
    struct Link {
        long value;
        std::shared_ptr<Link> next;
    };
    std::atomic<std::shared_ptr<Link>> head;
    std::atomic<int> turn = 0;
    long turns = 0;
    std::vector<std::jthread> team;
    for (int self = 0; self < threads; self++)
        team.emplace_back([&, self] {
            for (long i = 0; i < iterations; i++) {
                auto link = std::make_shared<Link>(i, head.load());
                while (!head.compare_exchange_weak(link->next, link)) {
                }
            }
            for (long i = 0; i < iterations; i++) {
                for (int now = turn; now != self; now = turn)
                    turn.wait(now);
                turns++;
                turn = (self + 1) % threads;
                turn.notify_all();
            }
        });
    team.clear();
    EXPECT(iterations * threads, turns);
    long sum = 0;
    for (auto link = head.exchange(nullptr); link; link = std::exchange(link->next, nullptr))
        sum += link->value;
    EXPECT(iterations * (iterations - 1) / 2 * threads, sum);
}

static void resources()
{
    std::pmr::synchronized_pool_resource pool;
    std::atomic<long> length = 0;
    std::vector<std::jthread> team;
    for (int self = 0; self < threads; self++)
        team.emplace_back([&] {
            std::pmr::vector<std::pmr::string> words(&pool);
            for (long i = 0; i < iterations; i++)
                words.emplace_back(static_cast<std::size_t>(20 + i % 100), 'w');
            for (const auto &word : words)
                length += static_cast<long>(word.size());
        });
    team.clear();
    long expected = 0;
    for (long i = 0; i < iterations; i++)
        expected += (20 + i % 100) * threads;
    EXPECT(expected, length);
}

// Threads write lines in pieces to one stream, which stay whole.
static void streams()
{
    std::ostringstream lines;
    std::vector<std::jthread> team;
    for (int self = 0; self < threads; self++)
        team.emplace_back([&] {
            for (long i = 0; i < iterations; i++)
                std::osyncstream(lines) << "0123456789" << i % 10 << "abcdefghij" << '\n';
        });
    team.clear();
    std::istringstream in(lines.str());
    long whole = 0, sum = 0, expected = 0;
    for (std::string line; std::getline(in, line);) {
        whole += line.size() == 21 && line.starts_with("0123456789") && line.ends_with("abcdefghij");
        sum += line.size() == 21 ? line[10] - '0' : 0;
    }
    for (long i = 0; i < iterations; i++)
        expected += i % 10 * threads;
    EXPECT(iterations * threads, whole);
    EXPECT(expected, sum);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 40);
    REQUIRE(threads % 2 == 0);
    pools();
    barriers();
    semaphores();
    atomics();
    resources();
    streams();
    return pass();
}
