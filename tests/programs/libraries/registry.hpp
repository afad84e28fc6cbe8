#pragma once
#include <map>
#include <memory>
#include <string>

// Shapes by name; the library's own constructors fill it.
struct Shape {
    virtual ~Shape() = default;
    virtual int corners() const = 0;
};

std::map<std::string, std::unique_ptr<Shape>> &shapes();
