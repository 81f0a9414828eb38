#include "sofie/runtime/view.h"

#include <algorithm>
#include <limits>

#include "sofie/runtime/error.h"

namespace sofie {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) {
  for (int64_t extent : extents) Append(extent);
}

void Shape::Append(int64_t extent) {
  if (rank_ == kMaxRank) {
    throw ShapeError("a shape has more than " + std::to_string(kMaxRank) +
                     " axes, which is not supported");
  }
  extents_[rank_++] = extent;
}

int64_t Shape::elements() const {
  if (std::find(begin(), end(), 0) != end()) return 0;
  int64_t product = 1;
  for (int64_t extent : *this) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool IsPacked(const Shape& shape, const Strides& strides) {
  if (strides.rank() == 0 || shape.elements() == 0) return true;
  int64_t packed = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[axis] != packed) return false;
    if (__builtin_mul_overflow(packed, shape[axis], &packed)) return false;
  }
  return true;
}

int64_t ElementsSpanned(const Shape& shape, const Strides& strides) {
  if (strides.rank() == 0 || shape.elements() == 0) return shape.elements();
  int64_t span = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) ||
        __builtin_add_overflow(span, reach, &span)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return span;
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
