// Threads, exceptions and local statics of C++. Prints "ok", or throws.
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Slow {
    std::string name;
    Slow() : name("slow")
    {
        std::this_thread::yield();
    }
};

static const Slow &slow()
{
    static Slow object;
    return object;
}

static int ended;

struct Own {
    int value = 1;
    ~Own()
    {
        ended += value;
    }
};

static thread_local Own own;

int main()
{
    std::mutex mutex;
    std::condition_variable changed;
    int arrived = 0, caught = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++)
        threads.emplace_back([&, i] {
            own.value = i;
            if (slow().name != "slow")
                throw std::logic_error("a local static was used too early");
            try {
                throw std::runtime_error(std::to_string(i));
            } catch (const std::runtime_error &error) {
                std::lock_guard lock(mutex);
                caught += std::stoi(error.what());
            }
            std::unique_lock lock(mutex);
            arrived++;
            changed.notify_all();
            changed.wait(lock, [&] { return arrived == 6; });
        });
    for (auto &thread : threads)
        thread.join();
    auto later = std::async(std::launch::async, [] { return 42; });
    if (caught != 15 || ended != 15 || later.get() != 42)
        throw std::logic_error("a thread's work is lost");
    std::puts("ok");
}
