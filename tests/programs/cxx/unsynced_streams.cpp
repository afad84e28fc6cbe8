// Standard streams with buffers of their own, in which threads print by turns: what they put there stays in order, and is written out at
// the end. A stream that another buffer is put into has it in all threads.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <pthread.h>
#include <sstream>

namespace {

constexpr long THREADS = 4, TURNS = 400;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
long turn;
std::stringbuf kept;
std::streambuf *own;

struct AtEnd {
    ~AtEnd() { std::cout << "after main"; }
} at_end;

void print(long self)
{
    if (turn % 50 == 20)
        own = std::cout.rdbuf(&kept);
    std::cout << std::setw(5) << turn << " by " << self << '\n';
    if (turn % 50 == 30)
        std::cout.rdbuf(own);
    if (turn % 9 == 0)
        std::cout << "flushed" << std::endl;
    if (turn % 7 == 0)
        std::clog << "line " << turn << '\n';
    if (turn % 11 == 0)
        std::cerr << "error " << turn << '\n';
    turn++;
}

void *take_turns(void *argument)
{
    long self = reinterpret_cast<long>(argument);
    pthread_mutex_lock(&mutex);
    while (turn < TURNS) {
        if (turn % THREADS == self) {
            print(self);
            pthread_cond_broadcast(&passed);
        } else {
            pthread_cond_wait(&passed, &mutex);
        }
    }
    pthread_mutex_unlock(&mutex);
    return nullptr;
}

} // namespace

int main()
{
    if (!std::ios::sync_with_stdio(false) || std::ios::sync_with_stdio(false))
        return 1;
    std::cout << "before the threads\n";
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], nullptr, take_turns, reinterpret_cast<void *>(i));
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    std::cout << kept.str() << (std::cout.good() ? "good\n" : "bad\n");
}
