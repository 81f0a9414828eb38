#include "sofie/runtime/test_model.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <span>
#include <sstream>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/sha256.h"

namespace sofie::test_model {
namespace {

constexpr DimInfo kN = {.symbol = 0};
constexpr DimInfo kP = {.symbol = 1};
constexpr DimInfo kPointsDims[] = {kN, {.value = 2}, kP};
constexpr DimInfo kMaskDims[] = {kN, kP};
constexpr DimInfo kTagsDims[] = {kN, {.value = 4}};
constexpr const char* kSymbols[] = {"N", "P"};
constexpr TensorInfo kInputs[] = {{"points", DType::kFloat32, kPointsDims},
                                  {"mask", DType::kFloat32, kMaskDims}};
constexpr TensorInfo kOutputs[] = {{"copied", DType::kFloat32, kPointsDims},
                                   {"mask_copy", DType::kFloat32, kMaskDims},
                                   {"tags", DType::kFloat32, kTagsDims}};
constexpr BufferInfo kBuffers[] = {{"points", 4, 0, 0},    {"mask", 4, 0, 3}, {"copied", 4, 2, 4},
                                   {"mask_copy", 4, 3, 4}, {"tags", 4, 4, 4}, {"t0", 4, 0, 1},
                                   {"t1", 4, 1, 2}};
constexpr StepInfo kSteps[] = {{"/first/Identity", "Copy_0"},
                               {"/second/Identity", "Copy_1"},
                               {"/third/Identity", "Copy_1"},
                               {"/mask/Identity", "Copy_2"},
                               {"/tags/Expand", "Expand_3"}};
constexpr uint8_t kGraphHash[32] = {7, 1, 2, 3};

void BufferBytes(const int64_t* symbols, int64_t* bytes) {
  const int64_t n = symbols[0];
  const int64_t p = symbols[1];
  if (p < kMinPoints) {
    throw ShapeError("node '/knn/TopK': k = 2 is larger than P = " + std::to_string(p));
  }
  const int64_t points = 4 * n * 2 * p;
  const int64_t mask = 4 * n * p;
  const int64_t all[] = {points, mask, points, mask, 4 * n * 4, points, points};
  std::copy(std::begin(all), std::end(all), bytes);
}

void OutputShapes(const int64_t* symbols, Shape* shapes) {
  shapes[0] = {symbols[0], 2, symbols[1]};
  shapes[1] = {symbols[0], symbols[1]};
  shapes[2] = {symbols[0], 4};
}

constexpr ModelInfo kInfo = {.name = "test_model",
                             .cpp_namespace = "test_model",
                             .generator_version = "test",
                             .symbols = kSymbols,
                             .inputs = kInputs,
                             .outputs = kOutputs,
                             .buffers = kBuffers,
                             .steps = kSteps,
                             .graph_hash = kGraphHash,
                             .weights_bytes = kWeightsBytes,
                             .buffer_bytes = &BufferBytes,
                             .output_shapes = &OutputShapes};

void CopyOnHost(LaunchContext&, void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

const ModelInfo& Info() { return kInfo; }

void Enqueue(CopyFn copy, LaunchContext& context, const int64_t* symbols, void* const* buffers,
             const std::byte* weights) {
  const auto points = static_cast<size_t>(4 * symbols[0] * 2 * symbols[1]);
  const auto mask = static_cast<size_t>(4 * symbols[0] * symbols[1]);
  context.Step(0);
  copy(context, buffers[5], buffers[0], points);
  context.Step(1);
  copy(context, buffers[6], buffers[5], points);
  context.Step(2);
  copy(context, buffers[2], buffers[6], points);
  context.Step(3);
  copy(context, buffers[3], buffers[1], mask);
  context.Step(4);
  for (int64_t i = 0; i < symbols[0]; ++i) {
    copy(context, static_cast<std::byte*>(buffers[4]) + 16 * i, weights, 16);
  }
}

void EnqueueOnHost(LaunchContext& context, const int64_t* symbols, void* const* buffers,
                   const std::byte* weights) {
  Enqueue(&CopyOnHost, context, symbols, buffers, weights);
}

std::vector<std::byte> WeightsFile(float first) {
  std::vector<std::byte> file(kWeightsOffset + kWeightsBytes, std::byte{' '});
  for (size_t i = 0; i < kWeightsBytes / 4; ++i) {
    const float value = first + static_cast<float>(i);
    std::memcpy(file.data() + kWeightsOffset + 4 * i, &value, 4);
  }
  std::ostringstream header;
  const auto hexadecimal = [&](std::span<const uint8_t> bytes) {
    header << std::hex << std::setfill('0');
    for (const uint8_t byte : bytes) header << std::setw(2) << static_cast<int>(byte);
  };
  header << R"({"__metadata__":{"sofie_weights":"2","graph":")";
  hexadecimal(kGraphHash);
  header << R"(","sha256":")";
  hexadecimal(Sha256(std::span(file).subspan(kWeightsOffset)));
  header << R"("},"w":{"dtype":"F32","shape":[128],"data_offsets":[0,512]}})";
  const std::string text = header.str();
  const uint64_t header_bytes = kWeightsOffset - 8;
  std::memcpy(file.data(), &header_bytes, 8);
  std::memcpy(file.data() + 8, text.data(), text.size());
  return file;
}

Tensors::Tensors(int64_t n, int64_t p, float seed)
    : n(n), p(p), points(2 * n * p), mask(n * p), copied(2 * n * p), mask_copy(n * p), tags(4 * n) {
  for (size_t i = 0; i < points.size(); ++i) points[i] = seed + static_cast<float>(i);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = -seed - static_cast<float>(i);
  for (auto* output : {&copied, &mask_copy, &tags}) {
    std::fill(output->begin(), output->end(), -12345.0f);
  }
}

std::vector<TensorView> Tensors::Inputs() const {
  return {View<const float>{points.data(), {n, 2, p}}, View<const float>{mask.data(), {n, p}}};
}

std::vector<MutableTensorView> Tensors::Outputs() {
  return {View<float>{copied.data(), {n, 2, p}}, View<float>{mask_copy.data(), {n, p}},
          View<float>{tags.data(), {n, 4}}};
}

std::string Tensors::Mismatch(float first) const {
  if (copied != points) return "copied differs from points";
  if (mask_copy != mask) return "mask_copy differs from mask";
  for (size_t i = 0; i < tags.size(); ++i) {
    if (tags[i] != first + static_cast<float>(i % 4)) return "tags are not the first weights";
  }
  return "";
}

}  // namespace sofie::test_model
