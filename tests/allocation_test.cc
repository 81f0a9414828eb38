// Runs at sizes that a session has run or prepared allocate nothing, on host or device.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/cnn.h"
#include "models/mlp.h"
#include "models/particle_net.h"
#include "sofie/runtime/heap_counter.h"
#include "tests/malloc_counter.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

struct Counts {
  int64_t operator_new = HeapAllocations();  // of this thread
  int64_t malloc = MallocCalls();            // of all threads, libraries included
  int64_t device = Allocations().allocations;
};

class AllocationTest : public BackendTest {
 protected:
  // OpenMP starts its threads in the first parallel region of a process, whoever's it is.
  AllocationTest() {
    ExpectRuns(*particle_net::NewSession(device()),
               ReadCase("particle_net_test", "N=7,n_pf=33,n_sv=3", particle_net::Info()));
  }

  // `action` does not allocate, and the counters are such that it would show.
  template <class Action>
  void ExpectAllocatesNothing(const Action& action) const {
    const Counts before;
    action();
    const Counts after;
    EXPECT_EQ(after.operator_new, before.operator_new);
    EXPECT_EQ(after.device, before.device);
    // The CUDA driver has threads and memory of its own.
    if (!gpu()) {
      EXPECT_EQ(after.malloc, before.malloc);
    }
  }
};

// A case with its views and with space for the outputs, made before anything is counted.
struct Prepared {
  explicit Prepared(ModelCase prepared_case)
      : model_case(std::move(prepared_case)), inputs(InputsOf(model_case)) {
    for (const ExpectedOutput& expected : model_case.outputs) {
      buffers.push_back(Poisoned(expected.tensor));
    }
    for (CaseTensor& buffer : buffers) {
      outputs.emplace_back(buffer.data.data(), buffer.dtype, buffer.shape);
    }
  }
  void ExpectRight() const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(Compare(buffers[i].view(), model_case.outputs[i]), "");
    }
  }

  ModelCase model_case;
  std::vector<TensorView> inputs;
  std::vector<CaseTensor> buffers;
  std::vector<MutableTensorView> outputs;
};

TEST_P(AllocationTest, CountersCount) {
  const Counts before;
  const auto memory = std::make_unique<int>(1);
  const DeviceTensors tensors(GetParam());
  DeviceTensors(GetParam()).Upload({DType::kInt8, {1}, {std::byte{1}}});
  const Counts after;
  EXPECT_GT(after.operator_new, before.operator_new);
  EXPECT_GT(after.malloc, before.malloc);
  EXPECT_GT(after.device, before.device);
}

TEST_P(AllocationTest, ParticleNetAtPreparedSizes) {
  Prepared small(ReadCase("particle_net_test", "N=7,n_pf=33,n_sv=3", particle_net::Info()));
  Prepared large(ReadCase("particle_net_test", "N=1,n_pf=128,n_sv=16", particle_net::Info()));
  particle_net::Session session(device());
  session.Prepare({.N = 7, .n_pf = 33, .n_sv = 3});
  session.Prepare({.N = 1, .n_pf = 128, .n_sv = 16});
  ExpectAllocatesNothing([&] {
    session.core().Run(small.inputs, small.outputs);
    session.core().Run(large.inputs, large.outputs);
    session.core().Run(small.inputs);
    session.core().Run(large.inputs);
  });
  small.ExpectRight();
  large.ExpectRight();
}

TEST_P(AllocationTest, ParticleNetAtSizesRunBefore) {
  Prepared first(ReadCase("particle_net_test", "N=1,n_pf=50,n_sv=5", particle_net::Info()));
  Prepared second(ReadCase("particle_net_test", "N=1,n_pf=17,n_sv=0", particle_net::Info()));
  particle_net::Session session(device());
  session.core().Run(first.inputs);
  session.core().Run(second.inputs);
  ExpectAllocatesNothing([&] {
    for (int round = 0; round < 3; ++round) {
      session.core().Run(first.inputs, first.outputs);
      session.core().Run(second.inputs, second.outputs);
    }
  });
  first.ExpectRight();
  second.ExpectRight();
}

TEST_P(AllocationTest, TypedInterface) {
  Prepared mlp_case(ReadCase("mlp_test", "N=100", mlp::Info()));
  Prepared cnn_case(ReadCase("cnn_test", "N=20", cnn::Info()));
  mlp::Session mlp_session(device());
  cnn::Session cnn_session(device());
  mlp_session.Prepare({.N = 100});
  cnn_session.Prepare({.N = 20});
  ExpectAllocatesNothing([&] {
    const mlp::Outputs a =
        mlp_session.Run({.features = ViewOf<float>(mlp_case.model_case.inputs[0])});
    const cnn::Outputs b = cnn_session.Run({.image = ViewOf<float>(cnn_case.model_case.inputs[0])});
    mlp_session.Run({.features = ViewOf<float>(mlp_case.model_case.inputs[0])},
                    {.probabilities = {reinterpret_cast<float*>(mlp_case.buffers[0].data.data()),
                                       a.probabilities.shape}});
    cnn_session.Run({.image = ViewOf<float>(cnn_case.model_case.inputs[0])},
                    {.probabilities = {reinterpret_cast<float*>(cnn_case.buffers[0].data.data()),
                                       b.probabilities.shape}});
  });
  mlp_case.ExpectRight();
  cnn_case.ExpectRight();
}

TEST_P(AllocationTest, RunsInDeviceMemory) {
  const ModelCase model_case =
      ReadCase("particle_net_test", "N=7,n_pf=33,n_sv=3", particle_net::Info());
  DeviceTensors tensors(GetParam());
  std::vector<TensorView> inputs;
  for (const CaseTensor& input : model_case.inputs) {
    const MutableTensorView view = tensors.Upload(input);
    inputs.emplace_back(view.data, view.dtype, view.shape, view.memory);
  }
  const std::vector<MutableTensorView> outputs = {
      tensors.Upload(Poisoned(model_case.outputs[0].tensor))};
  particle_net::Session session(device());
  session.Prepare({.N = 7, .n_pf = 33, .n_sv = 3});
  ExpectAllocatesNothing([&] {
    for (int round = 0; round < 3; ++round) session.core().Run(inputs, outputs);
    session.core().Run(inputs);
    session.core().Synchronize();
  });
  const CaseTensor result =
      tensors.Download({outputs[0].data, outputs[0].dtype, outputs[0].shape, outputs[0].memory});
  EXPECT_EQ(Compare(result.view(), model_case.outputs[0]), "");
}

// The figure that the memory report and a user's budget stand on: all that the session takes for
// one jet, besides the weights.
TEST_P(AllocationTest, OneJetTakesLittleMemory) {
  const int64_t before = Allocations().live_bytes;
  particle_net::Session session(device());
  session.Prepare({.N = 1, .n_pf = 100, .n_sv = 10});
  const MemoryReport report = session.core().memory();
  const int64_t taken = Allocations().live_bytes - before;
  EXPECT_EQ(taken,
            static_cast<int64_t>(report.arena + report.host_staging + report.weights_allocated));
  EXPECT_LT(taken - static_cast<int64_t>(report.weights_allocated), 16 << 20);
}

INSTANTIATE_TEST_SUITE_P(, AllocationTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
