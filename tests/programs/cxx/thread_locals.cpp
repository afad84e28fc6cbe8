// thread_local objects with constructors and destructors.
#include "../harness.h"
#include <mutex>
#include <string>
#include <vector>

static std::mutex mutex;
static int alive, made, destroyed;
static std::vector<std::string> last_words;

struct Tracker {
    std::string name = "unnamed";
    Tracker()
    {
        std::lock_guard<std::mutex> guard(mutex);
        alive++;
        made++;
    }
    ~Tracker()
    {
        std::lock_guard<std::mutex> guard(mutex);
        alive--;
        destroyed++;
        last_words.push_back(name);
    }
};

static thread_local Tracker tracker;
static thread_local std::vector<int> numbers{1, 2, 3};

static long work(int self)
{
    long violations = tracker.name != "unnamed" || numbers.size() != 3;
    tracker.name = "thread " + std::to_string(self);
    for (int i = 0; i < 2000; i++)
        numbers.push_back(i);
    violations += numbers.size() != 2003;
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    long violations = run_threads(threads, work);
    EXPECT(threads, made);
    EXPECT(threads, destroyed);
    EXPECT(0, alive);
    for (int i = 0; i < threads; i++) {
        int found = 0;
        for (const std::string &word : last_words)
            found += word == "thread " + std::to_string(i);
        EXPECT(1, found);
    }
    return verdict(violations, "a thread_local object was wrong");
}
