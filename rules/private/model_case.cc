#include "rules/private/model_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>

namespace sofie {
namespace model_case_internal {

constexpr int kMostLines = 5;
// Magnitude below which a row of zeros and a row of rounding errors are the same.
constexpr double kFloor = 1e-6;

using Arrays = std::map<std::string, NpyArray>;

const NpyArray& Find(const Arrays& arrays, const std::string& name, const std::string& path) {
  const auto found = arrays.find(name);
  if (found == arrays.end()) throw std::runtime_error(path + " has no array '" + name + "'.");
  return found->second;
}

CaseTensor Tensor(const Arrays& arrays, const std::string& name, const TensorInfo& info,
                  const std::string& path) {
  const NpyArray& array = Find(arrays, name, path);
  return TensorOf(array, info, path + ": '" + name + "'");
}

template <class T>
std::vector<T> Values(const Arrays& arrays, const std::string& name, const std::string& path) {
  const NpyArray& array = Find(arrays, name, path);
  std::vector<T> values(array.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

template <class T>
T At(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <class Packed>
double InByte(const void* data, DType dtype, int64_t index) {
  const int64_t per_byte = ElementsPerByte(dtype);
  return Packed::Unpack(At<uint8_t>(data, index / per_byte), index % per_byte);
}

double FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 0x400, exponent - 25);
}

// Collects the first few complaints and counts the others.
class Complaints {
 public:
  std::ostream& Add() {
    ++count_;
    return count_ <= kMostLines ? text_ << "\n  " : rest_;
  }
  std::string Text() const {
    if (count_ <= kMostLines) return text_.str();
    return text_.str() + "\n  and " + std::to_string(count_ - kMostLines) + " more";
  }

 private:
  int count_ = 0;
  std::ostringstream text_;
  std::ostringstream rest_;
};

// True if both are finite. Otherwise complains unless they are the same infinity or both NaN.
bool BothFinite(double actual, double expected, int64_t index, Complaints& complaints) {
  if (std::isfinite(actual) && std::isfinite(expected)) return true;
  const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
  if (!same) complaints.Add() << "element " << index << ": " << actual << ", not " << expected;
  return false;
}

void CompareRow(const TensorView& actual, const ExpectedOutput& expected, int64_t row,
                int64_t begin, int64_t end, Complaints& complaints) {
  const bool loose = expected.loose_rows.contains(row);
  const double tolerance = loose ? expected.loose_tolerance : expected.tolerance;
  double error_squares = 0;
  double squares = 0;
  double largest = 0;
  for (int64_t i = begin; i < end; ++i) {
    const double value = Element(actual.data, actual.dtype, i);
    const double wanted = Element(expected.tensor.data.data(), actual.dtype, i);
    if (!BothFinite(value, wanted, i, complaints)) continue;
    error_squares += (value - wanted) * (value - wanted);
    squares += wanted * wanted;
    largest = std::max(largest, std::abs(wanted));
  }
  const double floor = kFloor * std::sqrt(static_cast<double>(end - begin));
  const double relative = std::sqrt(error_squares) / std::max(std::sqrt(squares), floor);
  if (relative > tolerance) {
    complaints.Add() << "row " << row << (loose ? " (loose)" : "") << ": relative error "
                     << relative << ", more than " << tolerance;
  }
  for (int64_t i = begin; i < end; ++i) {
    const double value = Element(actual.data, actual.dtype, i);
    const double wanted = Element(expected.tensor.data.data(), actual.dtype, i);
    const double limit = tolerance * std::max(largest + std::abs(wanted), kFloor);
    if (std::isfinite(value) && std::isfinite(wanted) && std::abs(value - wanted) > limit) {
      complaints.Add() << "element " << i << ": " << value << ", not " << wanted;
    }
  }
}

void CompareExactly(const TensorView& actual, const ExpectedOutput& expected,
                    Complaints& complaints) {
  const void* ours = actual.data;
  const std::byte* theirs = expected.tensor.data.data();
  for (int64_t i = 0; i < actual.shape.elements(); ++i) {
    if (SameElement(ours, theirs, actual.dtype, i)) continue;
    complaints.Add() << "element " << i << ": " << Element(ours, actual.dtype, i) << ", not "
                     << Element(theirs, actual.dtype, i);
  }
}

}  // namespace model_case_internal

CaseTensor TensorOf(const NpyArray& array, const TensorInfo& info, const std::string& what) {
  CaseTensor tensor{info.dtype, Shape(std::span<const int64_t>(array.shape)), array.data};
  const auto elements = static_cast<size_t>(array.elements());
  if (tensor.data.size() != elements * SizeOf(info.dtype)) {
    throw std::runtime_error(what + " has dtype " + array.dtype + ", but '" + info.name +
                             "' of the model is " + NameOf(info.dtype) + ".");
  }
  const auto per_byte = static_cast<size_t>(ElementsPerByte(info.dtype));
  if (per_byte > 1) {
    const size_t bits = 8 / per_byte;
    const auto kept = static_cast<std::byte>((1 << bits) - 1);
    tensor.data.assign(BytesOf(info.dtype, array.elements()), std::byte{0});
    for (size_t i = 0; i < elements; ++i) {
      tensor.data[i / per_byte] |= (array.data[i] & kept) << (i % per_byte * bits);
    }
  }
  return tensor;
}

bool SameElement(const void* a, const void* b, DType dtype, int64_t index) {
  if (ElementsPerByte(dtype) > 1) return Element(a, dtype, index) == Element(b, dtype, index);
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  return std::memcmp(static_cast<const std::byte*>(a) + index * size,
                     static_cast<const std::byte*>(b) + index * size,
                     static_cast<size_t>(size)) == 0;
}

double Element(const void* data, DType dtype, int64_t index) {
  using namespace model_case_internal;  // NOLINT
  switch (dtype) {
    case DType::kFloat32:
      return At<float>(data, index);
    case DType::kFloat64:
      return At<double>(data, index);
    case DType::kFloat16:
      return FromHalf(At<uint16_t>(data, index));
    case DType::kBFloat16:
      return std::bit_cast<float>(uint32_t{At<uint16_t>(data, index)} << 16);
    case DType::kInt8:
      return At<int8_t>(data, index);
    case DType::kInt16:
      return At<int16_t>(data, index);
    case DType::kInt32:
      return At<int32_t>(data, index);
    case DType::kInt64:
      return static_cast<double>(At<int64_t>(data, index));
    case DType::kUInt8:
    case DType::kBool:
      return At<uint8_t>(data, index);
    case DType::kUInt16:
      return At<uint16_t>(data, index);
    case DType::kUInt32:
      return At<uint32_t>(data, index);
    case DType::kUInt64:
      return static_cast<double>(At<uint64_t>(data, index));
    case DType::kFloat8E4M3FN:
      return At<Float8E4M3FN>(data, index);
    case DType::kFloat8E4M3FNUZ:
      return At<Float8E4M3FNUZ>(data, index);
    case DType::kFloat8E5M2:
      return At<Float8E5M2>(data, index);
    case DType::kFloat8E5M2FNUZ:
      return At<Float8E5M2FNUZ>(data, index);
    case DType::kFloat8E8M0:
      return At<Float8E8M0>(data, index);
    case DType::kFloat4E2M1:
      return InByte<PackedFloat4E2M1>(data, dtype, index);
    case DType::kInt4:
      return InByte<PackedInt4>(data, dtype, index);
    case DType::kUInt4:
      return InByte<PackedUInt4>(data, dtype, index);
    case DType::kInt2:
      return InByte<PackedInt2>(data, dtype, index);
    case DType::kUInt2:
      return InByte<PackedUInt2>(data, dtype, index);
  }
  throw std::runtime_error("unknown element type");
}

ModelCase ReadModelCase(const std::string& path, const ModelInfo& info) {
  using namespace model_case_internal;  // NOLINT
  const Arrays arrays = ReadNpz(path);
  ModelCase result;
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    result.inputs.push_back(Tensor(arrays, "input_" + std::to_string(i), info.inputs[i], path));
  }
  const auto tolerances = Values<double>(arrays, "tolerances", path);
  if (arrays.contains("input_" + std::to_string(info.inputs.size())) ||
      tolerances.size() != 2 * info.outputs.size()) {
    throw std::runtime_error(path + " is a case of another model: it has other inputs or outputs.");
  }
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    const std::string number = std::to_string(i);
    const auto loose = Values<int64_t>(arrays, "loose_rows_" + number, path);
    result.outputs.push_back({Tensor(arrays, "output_" + number, info.outputs[i], path),
                              tolerances[2 * i],
                              tolerances[2 * i + 1],
                              {loose.begin(), loose.end()}});
  }
  const NpyArray& manifest = Find(arrays, "manifest", path);
  result.description.assign(reinterpret_cast<const char*>(manifest.data.data()),
                            manifest.data.size());
  return result;
}

std::string Compare(const TensorView& actual, const ExpectedOutput& expected) {
  using namespace model_case_internal;  // NOLINT
  const CaseTensor& wanted = expected.tensor;
  if (actual.dtype != wanted.dtype) {
    return std::string("dtype ") + NameOf(actual.dtype) + ", not " + NameOf(wanted.dtype);
  }
  if (actual.shape != wanted.shape) {
    return "shape " + ToString(actual.shape) + ", not " + ToString(wanted.shape);
  }
  Complaints complaints;
  if (expected.tolerance == 0 && expected.loose_rows.empty()) {
    CompareExactly(actual, expected, complaints);
    return complaints.Text();
  }
  const int64_t elements = actual.shape.elements();
  if (elements == 0) return "";
  const int64_t rows = actual.shape.rank() == 0 ? 1 : actual.shape[0];
  const int64_t row_elements = elements / rows;
  for (int64_t row = 0; row < rows; ++row) {
    CompareRow(actual, expected, row, row * row_elements, (row + 1) * row_elements, complaints);
  }
  return complaints.Text();
}

}  // namespace sofie
