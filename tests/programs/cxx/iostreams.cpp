// iostreams: std::cout from threads (one after the other), string streams and file streams in parallel.
#include "../harness.h"
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>
#include <unistd.h>

static std::vector<std::string> texts;
static char directory[] = "/tmp/iostreams.XXXXXX";

static long work(int self)
{
    std::ostringstream out;
    for (int i = 0; i < 300; i++)
        out << std::setw(6) << i * self << ' ' << std::fixed << std::setprecision(3) << i / 7.0 << '\n';
    std::string path = std::string(directory) + "/" + std::to_string(self);
    std::ofstream(path) << out.str();
    std::ifstream in(path);
    std::ostringstream back;
    back << in.rdbuf();
    std::istringstream parse_again(back.str());
    long first, violations = 0;
    double second;
    for (int i = 0; i < 300; i++) {
        parse_again >> first >> second;
        violations += first != i * self;
    }
    texts[static_cast<std::size_t>(self)] = back.str();
    violations += back.str() != out.str();
    return violations + (std::remove(path.c_str()) != 0);
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    REQUIRE(mkdtemp(directory));
    texts.resize(static_cast<std::size_t>(threads));
    long violations = run_threads(threads, work);
    REQUIRE(rmdir(directory) == 0);
    for (int i = 0; i < threads; i++)
        std::thread([i] {
            std::cout << "thread " << i << " wrote " << texts[static_cast<std::size_t>(i)].size() << " bytes"
                      << std::endl;
        }).join();
    std::cout << std::flush;
    return verdict(violations, "a stream was wrong");
}
