// Shapes, and views of memory that someone else owns.
#ifndef SOFIE_RUNTIME_VIEW_H_
#define SOFIE_RUNTIME_VIEW_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "sofie/runtime/dtype.h"

namespace sofie {

enum class Memory : uint8_t { kHost, kDevice };

// The largest rank of an input or output tensor.
inline constexpr int kMaxRank = 8;

// The extents of a tensor, outermost first. Allocates nothing.
class Shape {
 public:
  Shape() = default;
  // Throws ShapeError if there are more than kMaxRank extents.
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  // Adds an innermost extent. Throws ShapeError beyond kMaxRank.
  void Append(int64_t extent);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[axis]; }
  int64_t& operator[](int axis) { return extents_[axis]; }
  // The product of the extents; 1 for a scalar, the largest int64_t if the product is larger still.
  int64_t elements() const;

  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  std::span<const int64_t> extents() const { return {begin(), end()}; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// "[2, 3]"; "[]" for a scalar.
std::string ToString(const Shape& shape);

// How many elements lie between neighbours along each axis; none where a tensor is packed:
// row-major without gaps.
using Strides = Shape;

// For a stride that is not given: what it is where the tensor is packed.
inline constexpr int64_t kPacked = -1;

// True if an element's place is the same with these strides and without any.
bool IsPacked(const Shape& shape, const Strides& strides);

// Elements from a view's first one to its last one, those between them included; the largest
// int64_t if there are more. `strides` has one for each axis, none of them negative, or none.
int64_t ElementsSpanned(const Shape& shape, const Strides& strides);

// A typed tensor. Converts View<float> to View<const float>.
template <class T>
struct View {
  T* data = nullptr;
  Shape shape = {};
  Memory memory = Memory::kHost;
  Strides strides = {};

  // A template, since nvcc warns of a conversion of View<const T> to itself.
  template <class U>
    requires(!std::is_const_v<T> && std::is_same_v<U, const T>)
  operator View<U>() const {  // NOLINT: as a pointer converts to a pointer to const.
    return {data, shape, memory, strides};
  }
};

// The same with the element type as a value.
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  Memory memory = Memory::kHost;
  Strides strides = {};

  TensorView() = default;
  TensorView(const void* data, DType dtype, const Shape& shape, Memory memory = Memory::kHost,
             const Strides& strides = {})
      : data(data), dtype(dtype), shape(shape), memory(memory), strides(strides) {}
  template <class T>
  TensorView(const View<T>& view)  // NOLINT: a view is a tensor view.
      : data(view.data),
        dtype(kDTypeOf<T>),
        shape(view.shape),
        memory(view.memory),
        strides(view.strides) {}

  // The typed view of the same tensor. The caller vouches for T.
  template <class T>
  View<const T> as() const {
    return {static_cast<const T*>(data), shape, memory, strides};
  }
};

struct MutableTensorView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  Memory memory = Memory::kHost;
  Strides strides = {};

  MutableTensorView() = default;
  MutableTensorView(void* data, DType dtype, const Shape& shape, Memory memory = Memory::kHost,
                    const Strides& strides = {})
      : data(data), dtype(dtype), shape(shape), memory(memory), strides(strides) {}
  template <class T>
    requires(!std::is_const_v<T>)
  MutableTensorView(const View<T>& view)  // NOLINT: a view is a tensor view.
      : data(view.data),
        dtype(kDTypeOf<T>),
        shape(view.shape),
        memory(view.memory),
        strides(view.strides) {}
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_VIEW_H_
