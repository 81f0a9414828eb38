// Times attention alone; latency.h says how.
#include "benchmarks/attention_dense_128.h"
#include "benchmarks/attention_dense_64.h"
#include "benchmarks/attention_dense_causal_128.h"
#include "benchmarks/attention_dense_causal_64.h"
#include "benchmarks/attention_packed_128.h"
#include "benchmarks/attention_packed_64.h"
#include "benchmarks/attention_packed_causal_128.h"
#include "benchmarks/attention_packed_causal_64.h"
#include "benchmarks/latency.h"

int main(int argc, char** argv) {
  return sofie::benchmarks::MeasureLatency(
      argc, argv,
      {{"attention_dense_128", {&attention_dense_128::NewSession, &attention_dense_128::Info}},
       {"attention_dense_64", {&attention_dense_64::NewSession, &attention_dense_64::Info}},
       {"attention_dense_causal_128",
        {&attention_dense_causal_128::NewSession, &attention_dense_causal_128::Info}},
       {"attention_dense_causal_64",
        {&attention_dense_causal_64::NewSession, &attention_dense_causal_64::Info}},
       {"attention_packed_128", {&attention_packed_128::NewSession, &attention_packed_128::Info}},
       {"attention_packed_64", {&attention_packed_64::NewSession, &attention_packed_64::Info}},
       {"attention_packed_causal_128",
        {&attention_packed_causal_128::NewSession, &attention_packed_causal_128::Info}},
       {"attention_packed_causal_64",
        {&attention_packed_causal_64::NewSession, &attention_packed_causal_64::Info}}});
}
