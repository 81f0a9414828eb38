// Times models of single operators, which //benchmarks:compare_operators generates and links with
// this; latency.h says how.
#include <string>

#include "benchmarks/latency.h"
#include "tests/conformance/registry.h"

namespace sofie::conformance {

static benchmarks::Models& Known() {
  static benchmarks::Models models;
  return models;
}

Registration::Registration(const Model& model) {
  Known()[model.name] = {model.new_session, model.info};
}

}  // namespace sofie::conformance

int main(int argc, char** argv) {
  return sofie::benchmarks::MeasureLatency(argc, argv, sofie::conformance::Known());
}
