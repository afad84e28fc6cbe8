// The global locale is that of streams that threads make: one that the program has put together, one with a name, and the classic one
// again.
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <pthread.h>
#include <sstream>
#include <string>

namespace {

constexpr long THREADS = 4;
pthread_barrier_t barrier;

struct Quoted : std::numpunct<char> {
    char do_thousands_sep() const override { return '\''; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
    std::string do_truename() const override { return "ja"; }
};

// Kinds of facets that threads of different nodes use first.
template <int KIND> struct Own : std::locale::facet {
    static std::locale::id id;
    std::string what() const { return "own " + std::to_string(KIND); }
};
template <int KIND> std::locale::id Own<KIND>::id;

void expect(const std::string &wanted, const std::string &found)
{
    if (wanted == found)
        return;
    std::printf("FAIL global_locale: %s in place of %s\n", found.c_str(), wanted.c_str());
    std::fflush(stdout);
    std::_Exit(1);
}

std::string text()
{
    std::ostringstream out;
    out << std::boolalpha << 1234567 << ' ' << 2.5 << ' ' << true << ' ' << std::locale().name();
    return out.str();
}

template <int KIND> std::locale with(const std::locale &other)
{
    return std::locale(other, new Own<KIND>);
}

template <int KIND> std::string what(const std::locale &locale)
{
    return std::use_facet<Own<KIND>>(locale).what();
}

// Uses one of the kinds, and then all of them together.
void use_facets(long self)
{
    std::locale classic = std::locale::classic();
    expect("own " + std::to_string(self), self == 0   ? what<0>(with<0>(classic))
                                          : self == 1 ? what<1>(with<1>(classic))
                                          : self == 2 ? what<2>(with<2>(classic))
                                                      : what<3>(with<3>(classic)));
    pthread_barrier_wait(&barrier);
    std::locale all = with<3>(with<1>(with<0>(with<2>(classic))));
    expect("own 0, own 1, own 2, own 3", what<0>(all) + ", " + what<1>(all) + ", " + what<2>(all) + ", " + what<3>(all));
    pthread_barrier_wait(&barrier);
}

void *print(void *argument)
{
    long self = reinterpret_cast<long>(argument);
    const char *wanted[] = {"1'234'567 2,5 ja *", "1234567 2.5 true C.UTF-8", "1234567 2.5 true C", "1'234'567 2,5 ja *"};
    expect(wanted[0], text());
    pthread_barrier_wait(&barrier);
    use_facets(self);
    for (int turn = 1; turn < 4; turn++) {
        if (self == turn)
            std::locale::global(turn == 1   ? std::locale("C.UTF-8")
                                : turn == 2 ? std::locale::classic()
                                            : std::locale(std::locale::classic(), new Quoted));
        pthread_barrier_wait(&barrier);
        expect(wanted[turn], text());
        pthread_barrier_wait(&barrier);
    }
    return nullptr;
}

} // namespace

int main()
{
    std::locale::global(std::locale(std::locale(), new Quoted));
    pthread_barrier_init(&barrier, nullptr, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], nullptr, print, reinterpret_cast<void *>(i));
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    std::puts("PASS global_locale");
}
