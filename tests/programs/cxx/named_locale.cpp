// Threads use a locale object that another one has made, by its name: facets of characters, numbers, money and time.
#include <ctime>
#include <iomanip>
#include <iostream>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::string use(const std::locale &locale)
{
    std::ostringstream out;
    out.imbue(locale);
    std::tm day{};
    day.tm_year = 99;
    day.tm_mon = 11;
    day.tm_mday = 31;
    day.tm_wday = 5;
    const auto &letters = std::use_facet<std::ctype<char>>(locale);
    std::wistringstream in(L"  12.5 \u00e4bc");
    in.imbue(locale);
    double number = 0;
    std::wstring word;
    in >> number >> word;
    out << 1234567.5 << ' ' << std::put_money("123456") << ' ' << std::put_time(&day, "%A %d %B") << ' '
        << letters.toupper('x') << letters.is(std::ctype_base::digit, '7') << ' '
        << std::use_facet<std::numpunct<char>>(locale).truename() << ' ' << locale.name() << ' '
        << std::use_facet<std::collate<char>>(locale).compare("a", "a" + 1, "b", "b" + 1) << ' ' << number << word.size()
        << std::isalpha(word[0], locale) << int(std::toupper(word[0], locale));
    return out.str();
}

int main()
{
    try {
        std::locale unknown("no locale");
        return 1;
    } catch (const std::runtime_error &) {
    }
    const std::locale made("C.UTF-8");
    std::vector<std::string> found(4);
    std::vector<std::locale> copies(4, std::locale::classic());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            found[i] = use(made);
            copies[i] = std::locale(made, std::locale("C.UTF-8"), std::locale::numeric);
        });
    for (auto &thread : threads)
        thread.join();
    for (int i = 0; i < 4; i++)
        std::cout << found[i] << (found[i] == use(made) && use(copies[i]) == found[i] ? " same" : " different") << '\n';
}
