#include "benchmarks/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/device_memory.h"
#include "rules/private/model_case.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/profiler.h"
#include "sofie/runtime/session.h"

namespace sofie::benchmarks {
namespace {

struct Flags {
  std::string model;
  std::string device = "cpu";
  int threads = 0;
  int runs = 50;
  bool profile = false;
  std::string trace;
  std::string output;
  std::string weights;
  std::vector<std::string> cases;
};

Flags Parse(int argc, char** argv, const Models& models) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&](const std::string& name) {
      return argument.substr(name.size() + 3);  // --name=
    };
    const auto is = [&](const std::string& name) {
      return argument.rfind("--" + name + "=", 0) == 0;
    };
    if (is("model")) {
      flags.model = value("model");
    } else if (is("device")) {
      flags.device = value("device");
    } else if (is("threads")) {
      flags.threads = std::atoi(value("threads").c_str());
    } else if (is("runs")) {
      flags.runs = std::max(1, std::atoi(value("runs").c_str()));
    } else if (is("trace")) {
      flags.trace = value("trace");
    } else if (is("output")) {
      flags.output = value("output");
    } else if (is("weights")) {
      flags.weights = value("weights");
    } else if (argument == "--profile") {
      flags.profile = true;
    } else if (argument.rfind("--", 0) == 0) {
      throw ArgumentError("there is no flag " + argument +
                          "; there are --model, --device, --threads, --runs, --profile, "
                          "--trace, --output and --weights");
    } else {
      flags.cases.push_back(argument);
    }
  }
  if (!models.contains(flags.model)) throw ArgumentError("there is no model " + flags.model);
  if (flags.cases.empty()) throw ArgumentError("give the .npz file of at least one case");
  return flags;
}

Device DeviceOf(const Flags& flags, const Stream& stream) {
  if (flags.device == "cpu") return Device::Cpu();
  if (flags.device == "openmp") return Device::OpenMp(flags.threads);
  if (flags.device == "cuda") return Device::Cuda(0, stream.handle());
  throw ArgumentError("there is no device " + flags.device + "; there are cpu, openmp and cuda");
}

double Microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

double Quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

double Error(const TensorView& actual, const TensorView& expected) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < expected.shape.elements(); ++i) {
    const double a = Element(actual.data, actual.dtype, i);
    const double e = Element(expected.data, expected.dtype, i);
    difference += (a - e) * (a - e);
    norm += e * e;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// True for an input that the host reads, such as offsets: it stays where the host is.
bool IsReadByHost(const ModelInfo& info, size_t input) {
  return std::any_of(info.reads.begin(), info.reads.end(), [&](const ReadInfo& read) {
    return static_cast<size_t>(read.buffer) == input;
  });
}

void Measure(SessionCore& session, const Flags& flags, const std::string& path,
             const ModelCase& model_case, const Stream& stream) {
  const bool device = flags.device == "cuda";
  std::vector<TensorView> host;
  for (const CaseTensor& input : model_case.inputs) host.push_back(input.view());

  const auto begin = std::chrono::steady_clock::now();
  const std::span<const TensorView> results = session.Run(host);
  const double cold = Microseconds(std::chrono::steady_clock::now() - begin);
  double error = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const double own = Error(results[i], model_case.outputs[i].tensor.view());
    if (!std::isnan(error) && !(own <= error)) error = own;  // NaN is the largest
  }
  if (!flags.output.empty()) {
    const TensorView& first = results[0];
    std::ofstream file(flags.output, std::ios::binary);
    file.write(static_cast<const char*>(first.data),
               static_cast<std::streamsize>(BytesOf(first.dtype, first.shape.elements())));
  }

  std::vector<DeviceCopy> copies;
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < host.size(); ++i) {
    const bool copied = device && !IsReadByHost(session.info(), i);
    inputs.push_back(copied ? copies.emplace_back(host[i]).view() : host[i]);
  }
  for (int i = 0; i < 5; ++i) session.Run(inputs);
  stream.Synchronize();
  std::vector<double> wall;
  std::vector<double> host_share;
  std::vector<double> on_device;
  DeviceTimer timer(stream);
  for (int i = 0; i < flags.runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    session.Run(inputs);
    const auto returned = std::chrono::steady_clock::now();
    stream.Synchronize();
    wall.push_back(Microseconds(std::chrono::steady_clock::now() - start));
    host_share.push_back(Microseconds(returned - start));
  }
  for (int i = 0; i < flags.runs; ++i) {
    timer.Start();
    session.Run(inputs);
    timer.Stop();
    stream.Synchronize();
    on_device.push_back(timer.Microseconds());
  }
  const MemoryReport memory = session.memory();
  const size_t slash = path.find_last_of('/');
  std::cout << flags.model << "," << flags.device << "," << path.substr(slash + 1) << ","
            << Quantile(wall, 0.5) << "," << Quantile(wall, 0.25) << "," << Quantile(wall, 0.75)
            << "," << Quantile(host_share, 0.5) << "," << Quantile(on_device, 0.5) << "," << cold
            << "," << error << "," << memory.graph_nodes << "," << memory.arena << ","
            << memory.weights << std::endl;
  if (flags.profile || !flags.trace.empty()) {
    session.SetProfiling(true);
    for (int i = 0; i < flags.runs; ++i) session.Run(inputs);
    if (flags.profile) session.PrintProfile(std::cout);
    if (!flags.trace.empty()) {
      std::ofstream file(flags.trace);
      WriteChromeTrace(session.profile(), file);
    }
    session.SetProfiling(false);
  }
}

void Run(const Flags& flags, const Models& models) {
  const auto& [factory, info] = models.at(flags.model);
  const Stream stream(flags.device == "cuda");
  const std::unique_ptr<SessionCore> session =
      factory(DeviceOf(flags, stream), {.weights_file = flags.weights});
  std::cout << "model,device,case,median_us,lower_quartile_us,upper_quartile_us,host_us,"
               "device_us,cold_us,error,graph_nodes,arena_bytes,weights_bytes"
            << std::endl;
  for (const std::string& path : flags.cases) {
    const ModelCase model_case = ReadModelCase(path, info());
    Measure(*session, flags, path, model_case, stream);
  }
}

}  // namespace

int MeasureLatency(int argc, char** argv, const Models& models) {
  try {
    Run(Parse(argc, argv, models), models);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
    return 1;
  }
}

}  // namespace sofie::benchmarks
