// Element types of tensors.
#ifndef SOFIE_RUNTIME_DTYPE_H_
#define SOFIE_RUNTIME_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "sofie/runtime/float16.h"

namespace sofie {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
};

// The DType of a C++ type. Types without a DType do not compile.
template <class T>
struct DTypeTraits;
template <>
struct DTypeTraits<float> {
  static constexpr DType kValue = DType::kFloat32;
};
template <>
struct DTypeTraits<double> {
  static constexpr DType kValue = DType::kFloat64;
};
template <>
struct DTypeTraits<Float16> {
  static constexpr DType kValue = DType::kFloat16;
};
template <>
struct DTypeTraits<BFloat16> {
  static constexpr DType kValue = DType::kBFloat16;
};
template <>
struct DTypeTraits<int8_t> {
  static constexpr DType kValue = DType::kInt8;
};
template <>
struct DTypeTraits<int16_t> {
  static constexpr DType kValue = DType::kInt16;
};
template <>
struct DTypeTraits<int32_t> {
  static constexpr DType kValue = DType::kInt32;
};
template <>
struct DTypeTraits<int64_t> {
  static constexpr DType kValue = DType::kInt64;
};
template <>
struct DTypeTraits<uint8_t> {
  static constexpr DType kValue = DType::kUInt8;
};
template <>
struct DTypeTraits<uint16_t> {
  static constexpr DType kValue = DType::kUInt16;
};
template <>
struct DTypeTraits<uint32_t> {
  static constexpr DType kValue = DType::kUInt32;
};
template <>
struct DTypeTraits<uint64_t> {
  static constexpr DType kValue = DType::kUInt64;
};
template <>
struct DTypeTraits<bool> {
  static constexpr DType kValue = DType::kBool;
};
template <class T>
struct DTypeTraits<const T> : DTypeTraits<T> {};

template <class T>
inline constexpr DType kDTypeOf = DTypeTraits<T>::kValue;

// Bytes of one element.
size_t SizeOf(DType dtype);

// The name that NumPy gives the type: "float32", "bool", …
const char* NameOf(DType dtype);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_DTYPE_H_
