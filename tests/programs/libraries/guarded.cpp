// A library for dlopen with an object that is made when it is first needed, by whichever thread that is.
#include <stdexcept>
#include <string>

static int made;

struct Named {
    std::string name;
    explicit Named(const char *text) : name(std::string("the object is ") + text) { made++; }
};

static const Named &object()
{
    static const Named one("here");
    return one;
}

extern "C" const char *guarded_name(void)
{
    return object().name.c_str();
}

extern "C" int guarded_made(void)
{
    return made;
}
