// Global objects with constructors and destructors, virtual functions and RTTI across threads.
#include "../harness.h"
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual std::string name() const = 0;
};
struct Square : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
    std::string name() const override { return "square"; }
};
struct Rectangle : Shape {
    double width, height;
    Rectangle(double w, double h) : width(w), height(h) {}
    double area() const override { return width * height; }
    std::string name() const override { return "rectangle"; }
};

struct Global {
    std::vector<std::unique_ptr<Shape>> shapes;
    std::string note = "constructed before main, in a string longer than the short-string buffer";
    Global() { shapes.resize(MAX_THREADS); }
    ~Global() { printf("global destroyed: %s\n", note.c_str()); }
};
static Global global;

static long work(int self)
{
    if (self % 2)
        global.shapes[static_cast<std::size_t>(self)] = std::make_unique<Square>(self);
    else
        global.shapes[static_cast<std::size_t>(self)] = std::make_unique<Rectangle>(self, 2);
    return global.note.find("before main") == std::string::npos;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 1);
    long violations = run_threads(threads, work);
    for (int i = 0; i < threads; i++) {
        const Shape &shape = *global.shapes[static_cast<std::size_t>(i)];
        violations += shape.area() != (i % 2 ? i * i : i * 2);
        violations += shape.name() != (i % 2 ? "square" : "rectangle");
        violations += (dynamic_cast<const Square *>(&shape) != nullptr) != (i % 2 == 1);
        violations += (typeid(shape) == typeid(Rectangle)) != (i % 2 == 0);
    }
    global.note = "and changed by main";
    return verdict(violations, "an object was wrong");
}
