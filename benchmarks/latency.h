// How long a model takes on one device, call by call, and how far its results are from a reference.
//
//   latency --model=particle_net --device=cuda --runs=50 CASE.npz...
//
// CASE.npz is what //models:reference writes. For each it prints a line of CSV: wall time per call
// with inputs and outputs in the device's memory, from the call to the end of the work (median and
// quartiles), the host's share of a call, the device's time between events around a call, the first
// call at these sizes, the largest ‖out − reference‖ / ‖reference‖ of an output, launches in the
// captured graph, and bytes of the session's arena and weights. With --profile a table of the
// steps' times follows, --trace writes them to a file for chrome://tracing and Perfetto, --output
// writes the first output as it is in memory, and --weights names the file of weights of a model
// that has none embedded.
#ifndef BENCHMARKS_LATENCY_H_
#define BENCHMARKS_LATENCY_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sofie/runtime/session.h"

namespace sofie::benchmarks {

// What --model can be: how a session is made, and what the model is.
using Models =
    std::map<std::string,
             std::pair<std::unique_ptr<SessionCore> (*)(const Device&, const SessionOptions&),
                       const ModelInfo& (*)()>>;

// A main function; returns the process's exit status.
int MeasureLatency(int argc, char** argv, const Models& models);

}  // namespace sofie::benchmarks

#endif  // BENCHMARKS_LATENCY_H_
