// What the tests of generated models share. The same sources run on every backend: the environment
// variable SOFIE_TEST_BACKENDS names those to test, "cpu,openmp" or "cuda".
#ifndef TESTS_MODEL_TESTING_H_
#define TESTS_MODEL_TESTING_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rules/private/model_case.h"
#include "sofie/runtime/backend.h"
#include "sofie/runtime/device.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/view.h"

namespace sofie::model_testing {

// The backends to test. Ends the process with a message if the environment names none.
std::vector<Backend> BackendsUnderTest();

// A device of a backend. OpenMP gets three threads, also on a machine with fewer cores.
Device DeviceOf(Backend backend);

// A test for each backend; INSTANTIATE_TEST_SUITE_P(, Name, OnEachBackend(), BackendName).
class BackendTest : public testing::TestWithParam<Backend> {
 protected:
  Device device() const { return DeviceOf(GetParam()); }
  bool gpu() const { return GetParam() == Backend::kCuda; }
};
inline auto OnEachBackend() { return testing::ValuesIn(BackendsUnderTest()); }
std::string BackendName(const testing::TestParamInfo<Backend>& info);

// The case of tests/<test>_cases for these sizes, "N=1,n_pf=100,n_sv=10".
ModelCase ReadCase(const std::string& test, const std::string& sizes, const ModelInfo& info);

std::vector<TensorView> InputsOf(const ModelCase& model_case);

// A typed view of a tensor in host memory.
template <class T>
View<const T> ViewOf(const CaseTensor& tensor) {
  return tensor.view().as<T>();
}

// The same values in another copy, every byte of which is 0xff: no result has such elements.
CaseTensor Poisoned(const CaseTensor& tensor);

// Runs a case into poisoned host buffers and into the session's own, and compares both with the
// expected outputs.
void ExpectRuns(SessionCore& session, const ModelCase& model_case);

// Tensors in the memory that a backend's kernels use: the device's for CUDA, the host's else.
class DeviceTensors {
 public:
  explicit DeviceTensors(Backend backend);

  // A copy of these elements there, `offset` bytes after a multiple of 256.
  MutableTensorView Upload(const CaseTensor& tensor, size_t offset = 0);
  // A copy of the elements there in the host's memory. Waits for this object's copies only, not for
  // a session that writes them.
  CaseTensor Download(const TensorView& view);

 private:
  Memory memory_;
  std::unique_ptr<BackendRuntime> runtime_;
  std::vector<std::unique_ptr<DeviceMemory>> blocks_;
};

}  // namespace sofie::model_testing

#endif  // TESTS_MODEL_TESTING_H_
