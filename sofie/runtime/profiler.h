// Times of a model's steps, from device events on a GPU and the steady clock on the CPU.
#ifndef SOFIE_RUNTIME_PROFILER_H_
#define SOFIE_RUNTIME_PROFILER_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sofie/runtime/backend.h"
#include "sofie/runtime/model_info.h"

namespace sofie {

// Running mean and variance (Welford).
class Statistic {
 public:
  void Add(double value);
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Of the mean; 0 with fewer than two values.
  double standard_error() const;

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double m2_ = 0;
};

// A step that ran, in the order of ModelInfo::steps.
struct StepProfile {
  int index;               // in ModelInfo::steps
  const char* name;        // StepInfo::name
  const char* kernel;      // StepInfo::kernel
  Statistic microseconds;  // of one run
};

// All steps with one kernel.
struct KernelProfile {
  std::string kernel;
  int steps;               // that use it
  Statistic microseconds;  // of all those steps in one run
};

struct Profile {
  std::vector<StepProfile> steps;
  std::vector<KernelProfile> kernels;  // by name
  Statistic run_microseconds;          // of one run, without copies of inputs and outputs
  bool mixed_sizes = false;            // runs had different sizes, so that means mix them
};

// A table: steps in order, then kernels with the longest first.
void PrintProfile(const Profile& profile, std::ostream& stream);

// The mean times, one step after another, in the Trace Event format that chrome://tracing and
// Perfetto read.
void WriteChromeTrace(const Profile& profile, std::ostream& stream);

// Collects a Profile, run by run.
class Profiler {
 public:
  Profiler(const ModelInfo& info, std::unique_ptr<StepTimer> timer);

  // What to time a run with.
  StepTimer& timer() { return *timer_; }
  // After the run: waits for its end and takes its times.
  void Collect(std::span<const int64_t> symbols);

  const Profile& profile();

 private:
  const ModelInfo& info_;
  std::unique_ptr<StepTimer> timer_;
  std::vector<double> microseconds_;  // of the run at hand, by step
  std::vector<Statistic> steps_;
  std::vector<int> kernel_of_step_;
  std::vector<std::string> kernel_names_;
  std::vector<double> kernel_microseconds_;
  std::vector<Statistic> kernels_;
  std::vector<int64_t> symbols_;  // of the first run
  Profile profile_;
};

}  // namespace sofie

#endif  // SOFIE_RUNTIME_PROFILER_H_
