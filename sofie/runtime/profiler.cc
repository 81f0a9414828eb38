#include "sofie/runtime/profiler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace sofie {
namespace {

// One row of the table, cut after the name of any length.
void PrintRow(std::ostream& stream, const Statistic& time, double total, const std::string& label) {
  char text[80];
  const double share = total > 0 ? 100 * time.mean() / total : 0;
  std::snprintf(text, sizeof(text), "%12.2f %10.2f %7.1f %% ", time.mean(), time.standard_error(),
                share);
  stream << text << label << "\n";
}

void WriteJsonString(const char* text, std::ostream& stream) {
  stream << '"';
  for (const char* c = text; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", *c);
      stream << escape;
      continue;
    }
    if (*c == '"' || *c == '\\') stream << '\\';
    stream << *c;
  }
  stream << '"';
}

}  // namespace

void Statistic::Add(double value) {
  ++count_;
  const double delta = value - mean_;
  mean_ += delta / static_cast<double>(count_);
  m2_ += delta * (value - mean_);
}

double Statistic::standard_error() const {
  if (count_ < 2) return 0;
  const auto n = static_cast<double>(count_);
  return std::sqrt(m2_ / (n - 1) / n);
}

void PrintProfile(const Profile& profile, std::ostream& stream) {
  const double total = profile.run_microseconds.mean();
  stream << "Profile of " << profile.run_microseconds.count() << " runs";
  if (profile.mixed_sizes) stream << " of different sizes: the means mix them";
  stream << "\n     mean/µs  std.err/µs    share step (kernel)\n";
  for (const StepProfile& step : profile.steps) {
    PrintRow(stream, step.microseconds, total,
             std::to_string(step.index) + " " + step.name + " (" + step.kernel + ")");
  }
  PrintRow(stream, profile.run_microseconds, total, "whole run");

  std::vector<const KernelProfile*> by_time;
  for (const KernelProfile& kernel : profile.kernels) by_time.push_back(&kernel);
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto* a, const auto* b) {
    return a->microseconds.mean() > b->microseconds.mean();
  });
  stream << "     mean/µs  std.err/µs    share kernel (steps)\n";
  for (const KernelProfile* kernel : by_time) {
    PrintRow(stream, kernel->microseconds, total,
             kernel->kernel + " (" + std::to_string(kernel->steps) + ")");
  }
}

void WriteChromeTrace(const Profile& profile, std::ostream& stream) {
  stream << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  double start = 0;
  const char* separator = "\n";
  for (const StepProfile& step : profile.steps) {
    char times[80];
    std::snprintf(times, sizeof(times), "\"ts\": %.3f, \"dur\": %.3f", start,
                  step.microseconds.mean());
    stream << separator << "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, " << times << ", \"name\": ";
    WriteJsonString(step.name, stream);
    stream << ", \"cat\": ";
    WriteJsonString(step.kernel, stream);
    stream << "}";
    start += step.microseconds.mean();
    separator = ",\n";
  }
  stream << "\n]}\n";
}

Profiler::Profiler(const ModelInfo& info, std::unique_ptr<StepTimer> timer)
    : info_(info),
      timer_(std::move(timer)),
      microseconds_(info.steps.size()),
      steps_(info.steps.size()) {
  for (const StepInfo& step : info.steps) kernel_names_.emplace_back(step.kernel);
  std::sort(kernel_names_.begin(), kernel_names_.end());
  kernel_names_.erase(std::unique(kernel_names_.begin(), kernel_names_.end()), kernel_names_.end());
  for (const StepInfo& step : info.steps) {
    const auto found = std::lower_bound(kernel_names_.begin(), kernel_names_.end(), step.kernel);
    kernel_of_step_.push_back(static_cast<int>(found - kernel_names_.begin()));
  }
  kernel_microseconds_.resize(kernel_names_.size());
  kernels_.resize(kernel_names_.size());
  symbols_.reserve(info.symbols.size());
}

void Profiler::Collect(std::span<const int64_t> symbols) {
  const double total = timer_->Collect(microseconds_);
  if (profile_.run_microseconds.count() == 0) {
    symbols_.assign(symbols.begin(), symbols.end());
  } else if (!std::equal(symbols.begin(), symbols.end(), symbols_.begin(), symbols_.end())) {
    profile_.mixed_sizes = true;
  }
  profile_.run_microseconds.Add(total);
  std::fill(kernel_microseconds_.begin(), kernel_microseconds_.end(), -1.0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (microseconds_[i] < 0) continue;
    steps_[i].Add(microseconds_[i]);
    double& kernel = kernel_microseconds_[kernel_of_step_[i]];
    kernel = std::max(kernel, 0.0) + microseconds_[i];
  }
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernel_microseconds_[i] >= 0) kernels_[i].Add(kernel_microseconds_[i]);
  }
}

const Profile& Profiler::profile() {
  profile_.steps.clear();
  profile_.kernels.clear();
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].count() == 0) continue;
    profile_.steps.push_back({.index = static_cast<int>(i),
                              .name = info_.steps[i].name,
                              .kernel = info_.steps[i].kernel,
                              .microseconds = steps_[i]});
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (kernels_[k].count() == 0) continue;
    int steps = 0;
    for (const StepProfile& step : profile_.steps) {
      if (kernel_of_step_[step.index] == static_cast<int>(k)) ++steps;
    }
    profile_.kernels.push_back(
        {.kernel = kernel_names_[k], .steps = steps, .microseconds = kernels_[k]});
  }
  return profile_;
}

}  // namespace sofie
