// Times models of this repository; latency.h says how.
#include "benchmarks/latency.h"
#include "models/cnn.h"
#include "models/interaction_network.h"
#include "models/mlp.h"
#include "models/mlpf.h"
#include "models/particle_net.h"
#include "models/particle_net_bf16.h"
#include "models/particle_net_fp16.h"
#include "models/particle_net_ragged.h"
#include "models/particle_net_tf32.h"
#include "models/particle_transformer.h"
#include "models/transformer.h"

int main(int argc, char** argv) {
  return sofie::benchmarks::MeasureLatency(
      argc, argv,
      {{"cnn", {&cnn::NewSession, &cnn::Info}},
       {"interaction_network", {&interaction_network::NewSession, &interaction_network::Info}},
       {"mlp", {&mlp::NewSession, &mlp::Info}},
       {"mlpf", {&mlpf::NewSession, &mlpf::Info}},
       {"particle_net", {&particle_net::NewSession, &particle_net::Info}},
       {"particle_net_bf16", {&particle_net_bf16::NewSession, &particle_net_bf16::Info}},
       {"particle_net_fp16", {&particle_net_fp16::NewSession, &particle_net_fp16::Info}},
       {"particle_net_ragged", {&particle_net_ragged::NewSession, &particle_net_ragged::Info}},
       {"particle_net_tf32", {&particle_net_tf32::NewSession, &particle_net_tf32::Info}},
       {"particle_transformer", {&particle_transformer::NewSession, &particle_transformer::Info}},
       {"transformer", {&transformer::NewSession, &transformer::Info}}});
}
