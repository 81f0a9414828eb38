#include "examples/jets.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "sofie/npz/npz.h"

namespace examples {
namespace {

using sofie::NpyArray;

[[noreturn]] void Fail(const std::string& where, const std::string& message) {
  throw std::runtime_error(where + ": " + message);
}

std::string ShapeOf(const NpyArray& array) {
  std::string text = "[";
  for (const int64_t extent : array.shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

// The elements of an array that has to be of this type. `wanted` describes it.
template <class T>
std::vector<T> Elements(const NpyArray& array, const std::string& dtype, const std::string& wanted,
                        const std::string& where) {
  if (array.dtype != dtype) {
    Fail(where, "the array has dtype " + array.dtype + "; convert it to " + wanted +
                    " with numpy.astype.");
  }
  std::vector<T> elements(static_cast<size_t>(array.elements()));
  if (!elements.empty()) std::memcpy(elements.data(), array.data.data(), array.data.size());
  return elements;
}

std::vector<float> Rows(const NpyArray& array, int64_t columns, int64_t rows,
                        const std::string& where) {
  if (array.shape != std::vector<int64_t>{rows, columns}) {
    Fail(where, "the array has shape " + ShapeOf(array) + ", but the offsets and the model want [" +
                    std::to_string(rows) + ", " + std::to_string(columns) + "].");
  }
  return Elements<float>(array, "f4", "float32", where);
}

std::vector<int64_t> Offsets(const NpyArray& array, const std::string& where) {
  if (array.shape.size() != 1 || array.shape[0] < 1) {
    Fail(where, "the array has shape " + ShapeOf(array) + ", not [jets + 1].");
  }
  std::vector<int64_t> offsets = Elements<int64_t>(array, "i8", "int64", where);
  if (offsets[0] != 0)
    Fail(where, "offsets begin at " + std::to_string(offsets[0]) + ", not at 0.");
  const auto decrease = std::is_sorted_until(offsets.begin(), offsets.end());
  if (decrease != offsets.end()) {
    Fail(where, "offsets decrease at jet " + std::to_string(decrease - offsets.begin() - 1) +
                    "; jets lie one after another.");
  }
  return offsets;
}

Constituents ReadConstituents(const std::map<std::string, NpyArray>& arrays,
                              const std::string& kind, int64_t feature_count,
                              const std::string& path) {
  const auto find = [&](const std::string& name) -> const NpyArray& {
    const auto found = arrays.find(name);
    if (found == arrays.end()) Fail(path, "the file has no array '" + name + "'.");
    return found->second;
  };
  const auto where = [&](const std::string& name) { return path + ", '" + name + "'"; };
  const std::string offsets = kind + "_offsets";
  const std::string points = kind + "_points";
  const std::string features = kind + "_features";
  Constituents result;
  result.feature_count = feature_count;
  result.offsets = Offsets(find(offsets), where(offsets));
  const int64_t rows = result.offsets.back();
  result.points = Rows(find(points), kPointAxes, rows, where(points));
  result.features = Rows(find(features), feature_count, rows, where(features));
  return result;
}

Jets FromArrays(const std::string& path) {
  const std::map<std::string, NpyArray> arrays = sofie::ReadNpz(path);
  Jets jets{ReadConstituents(arrays, "pf", kParticleFeatures, path),
            ReadConstituents(arrays, "sv", kVertexFeatures, path),
            {}};
  if (jets.vertices.offsets.size() != jets.particles.offsets.size()) {
    Fail(path, "'pf_offsets' has " + std::to_string(jets.size()) + " jets, but 'sv_offsets' has " +
                   std::to_string(jets.vertices.offsets.size() - 1) + ".");
  }
  if (const auto label = arrays.find("label"); label != arrays.end()) {
    const std::string where = path + ", 'label'";
    if (label->second.shape != std::vector<int64_t>{jets.size()}) {
      Fail(where, "the array has shape " + ShapeOf(label->second) + ", not [" +
                      std::to_string(jets.size()) + "].");
    }
    jets.labels = Elements<int32_t>(label->second, "i4", "int32", where);
  }
  return jets;
}

Jets FromParticles(const std::string& path) {
  constexpr int64_t kColumns = kPointAxes + kParticleFeatures;
  const NpyArray array = sofie::ReadNpy(path);
  if (array.shape.size() != 3 || array.shape[2] != kColumns) {
    Fail(path, "the array has shape " + ShapeOf(array) + ", not [jets, particles, " +
                   std::to_string(kColumns) + "].");
  }
  const std::vector<float> elements = Elements<float>(array, "f4", "float32", path);
  const int64_t jet_count = array.shape[0];
  const int64_t most = array.shape[1];
  const auto is_zero = [](float value) { return value == 0; };

  Jets jets;
  jets.particles.feature_count = kParticleFeatures;
  jets.particles.offsets.push_back(0);
  jets.vertices.feature_count = kVertexFeatures;
  jets.vertices.offsets.assign(static_cast<size_t>(jet_count) + 1, 0);
  for (int64_t jet = 0; jet < jet_count; ++jet) {
    const float* first = elements.data() + jet * most * kColumns;
    int64_t count = most;
    while (count > 0 &&
           std::all_of(first + (count - 1) * kColumns, first + count * kColumns, is_zero)) {
      --count;
    }
    for (const float* row = first; row != first + count * kColumns; row += kColumns) {
      jets.particles.points.insert(jets.particles.points.end(), row, row + kPointAxes);
      jets.particles.features.insert(jets.particles.features.end(), row + kPointAxes,
                                     row + kColumns);
    }
    jets.particles.offsets.push_back(jets.particles.offsets.back() + count);
  }
  return jets;
}

}  // namespace

Jets ReadJets(const std::string& path) {
  if (path.ends_with(".npz")) return FromArrays(path);
  if (path.ends_with(".npy")) return FromParticles(path);
  Fail(path, "the name of the file must end with .npz or .npy, NumPy's formats.");
}

}  // namespace examples
