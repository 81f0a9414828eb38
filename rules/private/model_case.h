// One case of a model's test: what goes in, what must come out, and how close. The files are
// written by models/reference.py, which describes them.
#ifndef RULES_PRIVATE_MODEL_CASE_H_
#define RULES_PRIVATE_MODEL_CASE_H_

#include <cstddef>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "sofie/npz/npz.h"
#include "sofie/runtime/dtype.h"
#include "sofie/runtime/model_info.h"
#include "sofie/runtime/view.h"

namespace sofie {

// A tensor of a case in memory of its own.
struct CaseTensor {
  DType dtype;
  Shape shape;
  std::vector<std::byte> data;

  TensorView view() const { return {data.data(), dtype, shape}; }
};

struct ExpectedOutput {
  CaseTensor tensor;
  double tolerance;                        // largest ‖out−ref‖/‖ref‖ of a row (index on axis 0)
  double loose_tolerance;                  // the same for the loose rows
  std::unordered_set<int64_t> loose_rows;  // whose result hangs on a near tie
};

struct ModelCase {
  std::string description;  // JSON: sizes, names, oracle, seed
  std::vector<CaseTensor> inputs;
  std::vector<ExpectedOutput> outputs;
};

// Reads a case of this model. Throws std::runtime_error if the file does not fit the model.
ModelCase ReadModelCase(const std::string& path, const ModelInfo& info);

// The array as the model has it in memory: elements of less than 8 bits, which the file holds a
// byte each, share bytes. Throws std::runtime_error, which begins with `what`, if it does not fit.
CaseTensor TensorOf(const NpyArray& array, const TensorInfo& info, const std::string& what);

// True if two tensors have the same bits at an index.
bool SameElement(const void* a, const void* b, DType dtype, int64_t index);

// Element `index` of packed data. 64-bit integers above 2^53 are rounded.
double Element(const void* data, DType dtype, int64_t index);

// What is wrong with `actual`, at most a few lines, or "" if nothing is. Each row must be within
// its tolerance, and each element within that times the largest magnitude in its row and its own.
// NaNs and infinities must be where they are expected. Types without a tolerance must be equal.
std::string Compare(const TensorView& actual, const ExpectedOutput& expected);

}  // namespace sofie

#endif  // RULES_PRIVATE_MODEL_CASE_H_
