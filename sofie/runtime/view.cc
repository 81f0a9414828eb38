#include "sofie/runtime/view.h"

#include <algorithm>
#include <cstddef>

#include "sofie/runtime/error.h"

namespace sofie {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) {
  if (extents.size() > static_cast<size_t>(kMaxRank)) {
    throw ShapeError("a shape has " + std::to_string(extents.size()) + " axes; at most " +
                     std::to_string(kMaxRank) + " are supported");
  }
  rank_ = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t extent : *this) product *= extent;
  return product;
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

}  // namespace sofie
