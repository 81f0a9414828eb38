// Element types of tensors.
#ifndef SOFIE_RUNTIME_DTYPE_H_
#define SOFIE_RUNTIME_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "sofie/runtime/float16.h"
#include "sofie/runtime/small_float.h"

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
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
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
template <>
struct DTypeTraits<Float8E4M3FN> {
  static constexpr DType kValue = DType::kFloat8E4M3FN;
};
template <>
struct DTypeTraits<Float8E4M3FNUZ> {
  static constexpr DType kValue = DType::kFloat8E4M3FNUZ;
};
template <>
struct DTypeTraits<Float8E5M2> {
  static constexpr DType kValue = DType::kFloat8E5M2;
};
template <>
struct DTypeTraits<Float8E5M2FNUZ> {
  static constexpr DType kValue = DType::kFloat8E5M2FNUZ;
};
template <>
struct DTypeTraits<Float8E8M0> {
  static constexpr DType kValue = DType::kFloat8E8M0;
};
template <>
struct DTypeTraits<PackedFloat4E2M1> {
  static constexpr DType kValue = DType::kFloat4E2M1;
};
template <>
struct DTypeTraits<PackedInt4> {
  static constexpr DType kValue = DType::kInt4;
};
template <>
struct DTypeTraits<PackedUInt4> {
  static constexpr DType kValue = DType::kUInt4;
};
template <>
struct DTypeTraits<PackedInt2> {
  static constexpr DType kValue = DType::kInt2;
};
template <>
struct DTypeTraits<PackedUInt2> {
  static constexpr DType kValue = DType::kUInt2;
};
template <class T>
struct DTypeTraits<const T> : DTypeTraits<T> {};

template <class T>
inline constexpr DType kDTypeOf = DTypeTraits<T>::kValue;

// Elements in a byte: 2 or 4 for types of 4 or 2 bits, else 1.
int ElementsPerByte(DType dtype);

// Bytes of one element, or of the byte that it shares.
size_t SizeOf(DType dtype);

// Bytes of so many elements one after another.
size_t BytesOf(DType dtype, int64_t elements);

// The name that NumPy and its extension ml_dtypes give the type: "float32", "bfloat16", …
const char* NameOf(DType dtype);

}  // namespace sofie

#endif  // SOFIE_RUNTIME_DTYPE_H_
