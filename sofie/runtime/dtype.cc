#include "sofie/runtime/dtype.h"

namespace sofie {

int ElementsPerByte(DType dtype) {
  switch (dtype) {
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4:
      return 2;
    case DType::kInt2:
    case DType::kUInt2:
      return 4;
    default:
      return 1;
  }
}

size_t BytesOf(DType dtype, int64_t elements) {
  const int64_t per_byte = ElementsPerByte(dtype);
  const int64_t units = elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
  return static_cast<size_t>(units) * SizeOf(dtype);
}

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
    case DType::kUInt2:
      return 1;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return 8;
  }
  return 0;
}

const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
    case DType::kUInt16:
      return "uint16";
    case DType::kUInt32:
      return "uint32";
    case DType::kUInt64:
      return "uint64";
    case DType::kBool:
      return "bool";
    case DType::kFloat8E4M3FN:
      return "float8_e4m3fn";
    case DType::kFloat8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case DType::kFloat8E5M2:
      return "float8_e5m2";
    case DType::kFloat8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case DType::kFloat8E8M0:
      return "float8_e8m0fnu";
    case DType::kFloat4E2M1:
      return "float4_e2m1fn";
    case DType::kInt4:
      return "int4";
    case DType::kUInt4:
      return "uint4";
    case DType::kInt2:
      return "int2";
    case DType::kUInt2:
      return "uint2";
  }
  return "unknown";
}

}  // namespace sofie
