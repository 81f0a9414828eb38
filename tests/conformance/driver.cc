// Runs the models of ONNX's tests that are linked into this program.
//
//   driver DEVICE JOBS
//
// DEVICE is cpu, openmp or cuda. A line of the file JOBS is the name of a model, its weights, and
// files with inputs and expected outputs (see build.py), between tabs. Says "begin" before a model,
// "passed" or "wrong" after it, a line each, and fails only if the arguments are wrong: whoever
// called it knows by the "begin" which model has ended the process.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rules/private/model_case.h"
#include "sofie/npz/npz.h"
#include "sofie/runtime/device.h"
#include "sofie/runtime/dtype.h"
#include "sofie/runtime/session.h"
#include "sofie/runtime/view.h"
#include "tests/conformance/registry.h"

namespace sofie::conformance {
namespace {

// A byte that no result is made of: as float32 a NaN, as an integer -1.
constexpr std::byte kPoison{0xff};

std::map<std::string, Model>& Models() {
  static std::map<std::string, Model> models;
  return models;
}

// One run of a model.
struct Case {
  std::vector<CaseTensor> inputs;
  std::vector<CaseTensor> outputs;
  double rtol;
  double atol;
};

std::vector<CaseTensor> ReadTensors(const std::map<std::string, NpyArray>& arrays,
                                    const std::string& prefix, std::span<const TensorInfo> infos) {
  std::vector<CaseTensor> tensors;
  for (const TensorInfo& info : infos) {
    const NpyArray& array = arrays.at(prefix + std::to_string(tensors.size()));
    tensors.push_back(TensorOf(array, info, prefix + std::to_string(tensors.size())));
  }
  return tensors;
}

Case ReadCase(const std::string& path, const ModelInfo& info) {
  const std::map<std::string, NpyArray> arrays = ReadNpz(path);
  const NpyArray& tolerances = arrays.at("tolerances");
  double values[2];
  std::memcpy(values, tolerances.data.data(), sizeof(values));
  return {ReadTensors(arrays, "input_", info.inputs), ReadTensors(arrays, "output_", info.outputs),
          values[0], values[1]};
}

bool IsFloat(DType dtype) {
  const std::string name = NameOf(dtype);
  return name.find("float") != std::string::npos;
}

// As numpy.isclose with equal_nan.
bool Close(double have, double want, const Case& c) {
  if (std::isnan(have) || std::isnan(want)) return std::isnan(have) && std::isnan(want);
  if (std::isinf(have) || std::isinf(want)) return have == want;
  return std::abs(have - want) <= c.atol + c.rtol * std::abs(want);
}

// Throws std::runtime_error if an output is not what it must be.
void Compare(const TensorView& have, const CaseTensor& want, const Case& c,
             const std::string& name) {
  std::ostringstream why;
  why << "output " << name << ": ";
  if (have.dtype != want.dtype || have.shape != want.shape) {
    why << NameOf(have.dtype) << " " << ToString(have.shape) << ", not " << NameOf(want.dtype)
        << " " << ToString(want.shape);
    throw std::runtime_error(why.str());
  }
  // Random: any elements do.
  if (std::isinf(c.atol)) return;
  const int64_t elements = have.shape.elements();
  int64_t bad = 0;
  for (int64_t i = 0; i < elements; ++i) {
    if (SameElement(have.data, want.data.data(), have.dtype, i)) continue;
    const double value = Element(have.data, have.dtype, i);
    const double wanted = Element(want.data.data(), have.dtype, i);
    if (IsFloat(have.dtype) && Close(value, wanted, c)) continue;
    if (bad == 0) why << "element " << i << " is " << value << ", not " << wanted;
    ++bad;
  }
  if (bad == 0) return;
  why << " (" << bad << " of " << elements << " are wrong)";
  throw std::runtime_error(why.str());
}

void Run(SessionCore& session, const Case& c) {
  const ModelInfo& info = session.info();
  std::vector<TensorView> inputs;
  for (const CaseTensor& tensor : c.inputs) inputs.push_back(tensor.view());

  std::vector<CaseTensor> buffers = c.outputs;
  std::vector<MutableTensorView> outputs;
  bool any = false;
  for (CaseTensor& buffer : buffers) {
    std::fill(buffer.data.begin(), buffer.data.end(), kPoison);
    outputs.emplace_back(buffer.data.data(), buffer.dtype, buffer.shape);
    any = any || buffer.shape.elements() > 0;
  }
  session.Run(inputs, outputs);
  for (size_t i = 0; i < buffers.size(); ++i) {
    Compare(buffers[i].view(), c.outputs[i], c,
            std::string(info.outputs[i].name) + " in the caller's buffer");
  }
  const std::span<const TensorView> own = session.Run(inputs);
  for (size_t i = 0; i < own.size(); ++i) Compare(own[i], c.outputs[i], c, info.outputs[i].name);

  const bool on_gpu = session.device().backend() == Backend::kCuda;
  if (on_gpu && any && session.memory().graph_kernels == 0) {
    throw std::runtime_error("no kernel was launched");
  }
}

// What went wrong, on one line; "" if nothing did.
std::string Test(const std::vector<std::string>& job, const Device& device) {
  try {
    const Model& model = Models().at(job.at(0));
    const std::unique_ptr<SessionCore> session =
        model.new_session(device, {.weights_file = job.at(1)});
    for (size_t i = 2; i < job.size(); ++i) Run(*session, ReadCase(job[i], model.info()));
    return job.size() > 2 ? "" : "there is nothing to run";
  } catch (const std::exception& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return message;
  }
}

Device DeviceOf(const std::string& name) {
  if (name == NameOf(Backend::kCpu)) return Device::Cpu();
  if (name == NameOf(Backend::kOpenMp)) return Device::OpenMp(3);
  if (name == NameOf(Backend::kCuda)) return Device::Cuda();
  throw std::runtime_error("there is no backend '" + name + "'");
}

int Main(const std::string& device_name, const std::string& path) {
  const Device device = DeviceOf(device_name);
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " can't be read");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> job;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, '\t');) job.push_back(field);
    std::cout << "begin\t" << job.at(0) << std::endl;
    const std::string why = Test(job, device);
    std::cout << (why.empty() ? "passed" : "wrong") << "\t" << job.at(0);
    if (!why.empty()) std::cout << "\t" << why;
    std::cout << std::endl;
  }
  return EXIT_SUCCESS;
}

}  // namespace

Registration::Registration(const Model& model) { Models().emplace(model.name, model); }

}  // namespace sofie::conformance

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: driver cpu|openmp|cuda JOBS\n";
    return EXIT_FAILURE;
  }
  try {
    return sofie::conformance::Main(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
