// Jets of different sizes in one run: each comes out as it does alone.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "models/particle_net.h"
#include "models/particle_net_ragged.h"
#include "sofie/runtime/error.h"
#include "sofie/runtime/testing.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

// A row of a case.
struct Row {
  const ModelCase* model_case;
  int64_t index;
};

class RaggedTest : public BackendTest {
 protected:
  RaggedTest() {
    for (const char* sizes :
         {"N=1,n_pf=100,n_sv=10", "N=1,n_pf=17,n_sv=0", "N=7,n_pf=33,n_sv=3", "N=1,n_pf=50,n_sv=5",
          "N=1,n_pf=128,n_sv=16", "N=64,n_pf=100,n_sv=10"}) {
      cases_.push_back(ReadCase("particle_net_test", sizes, particle_net::Info()));
    }
  }

  // Jets of all sizes, neighbours different.
  std::vector<Row> Jets(size_t count) const {
    std::vector<Row> rows;
    for (int64_t index = 0; rows.size() < count; ++index) {
      for (const ModelCase& one : cases_) {
        if (index < one.outputs[0].tensor.shape[0] && rows.size() < count) {
          rows.push_back({&one, index});
        }
      }
    }
    return rows;
  }

  // The points of all jets, one after the other; then where each begins.
  static ModelCase Batch(const std::vector<Row>& rows) {
    const auto count = static_cast<int64_t>(rows.size());
    ModelCase batch;
    std::vector<std::vector<int64_t>> offsets;
    for (size_t i = 0; i < 6; ++i) {
      CaseTensor points{DType::kFloat32, {0, particle_net::Info().inputs[i].dims[1].value}, {}};
      std::vector<int64_t> begins = {0};
      for (const Row& row : rows) Append(row.model_case->inputs[i], row.index, points);
      for (const Row& row : rows) {
        begins.push_back(begins.back() + row.model_case->inputs[i].shape[2]);
      }
      batch.inputs.push_back(points);
      if (i % 3 == 0) offsets.push_back(begins);
    }
    for (const std::vector<int64_t>& begins : offsets) {
      CaseTensor tensor{DType::kInt64, {count + 1}, {}};
      tensor.data.resize(begins.size() * sizeof(int64_t));
      std::memcpy(tensor.data.data(), begins.data(), tensor.data.size());
      batch.inputs.push_back(tensor);
    }
    ExpectedOutput output{{DType::kFloat32, {count, 8}, {}}, 0, 0, {}};
    for (int64_t i = 0; i < count; ++i) {
      const ExpectedOutput& one = rows[i].model_case->outputs[0];
      const std::byte* const from = one.tensor.data.data() + rows[i].index * 32;
      output.tensor.data.insert(output.tensor.data.end(), from, from + 32);
      output.tolerance = one.tolerance;
      output.loose_tolerance = one.loose_tolerance;
      if (one.loose_rows.contains(rows[i].index)) output.loose_rows.insert(i);
    }
    batch.outputs.push_back(output);
    return batch;
  }

  std::vector<ModelCase> cases_;

 private:
  // Row `index` of [rows, channels, points] as [points, channels].
  static void Append(const CaseTensor& from, int64_t index, CaseTensor& to) {
    const int64_t channels = from.shape[1];
    const int64_t points = from.shape[2];
    const auto* const row =
        reinterpret_cast<const float*>(from.data.data()) + index * channels * points;
    for (int64_t point = 0; point < points; ++point) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        const auto* const element =
            reinterpret_cast<const std::byte*>(row + channel * points + point);
        to.data.insert(to.data.end(), element, element + sizeof(float));
      }
    }
    to.shape[0] += points;
  }
};

TEST_P(RaggedTest, EachJetAsIfAlone) {
  const auto session = particle_net_ragged::NewSession(device());
  for (const size_t count : {7, 1, 75, 0, 2, 40}) {
    SCOPED_TRACE(count);
    ExpectRuns(*session, Batch(Jets(count)));
  }
}

TEST_P(RaggedTest, FromAndToWhereKernelsCompute) {
  const ModelCase batch = Batch(Jets(20));
  particle_net_ragged::Session session(device());
  DeviceTensors tensors(GetParam());
  std::vector<TensorView> inputs;
  for (const CaseTensor& input : batch.inputs) {
    if (input.dtype == DType::kInt64) {
      inputs.push_back(input.view());
      continue;
    }
    const MutableTensorView view = tensors.Upload(input);
    inputs.emplace_back(view.data, view.dtype, view.shape, view.memory);
  }
  const MutableTensorView output = tensors.Upload(Poisoned(batch.outputs[0].tensor));
  session.core().Run(inputs, std::vector<MutableTensorView>{output});
  const TensorView written(output.data, output.dtype, output.shape, output.memory);
  EXPECT_EQ(Compare(tensors.Download(written).view(), batch.outputs[0]), "");
}

TEST_P(RaggedTest, ReservedSizesNeverGrowTheArena) {
  particle_net_ragged::Session session(device());
  session.Reserve({.N = 20, .n_pf = 2560, .n_sv = 320, .longest_n_pf = 128, .longest_n_sv = 16});
  const size_t arena = session.core().memory().arena;
  for (const size_t count : {3, 20, 11}) ExpectRuns(session.core(), Batch(Jets(count)));
  EXPECT_EQ(session.core().memory().arena, arena);
}

// `change` makes the offsets of five jets wrong.
template <class Change>
std::string MessageOf(const Device& device, ModelCase batch, const Change& change) {
  const auto session = particle_net_ragged::NewSession(device);
  change(reinterpret_cast<int64_t*>(batch.inputs[6].data.data()));
  try {
    session->Run(InputsOf(batch));
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "";
}

TEST_P(RaggedTest, OffsetsAreChecked) {
  const ModelCase batch = Batch(Jets(5));  // of 100, 17, 33, 50 and 128 particles
  EXPECT_EQ(MessageOf(device(), batch, [](int64_t* offsets) { offsets[0] = 1; }),
            "input 'n_pf_offsets': the first offset is 1; offsets start at 0");
  EXPECT_EQ(MessageOf(device(), batch, [](int64_t* offsets) { offsets[2] = 99; }),
            "input 'n_pf_offsets': offset 2 is 99, less than the one before, 100");
  EXPECT_EQ(MessageOf(device(), batch, [](int64_t* offsets) { offsets[5] = 329; }),
            "input 'n_pf_offsets': the last offset is 329, but the other inputs have 328 points; "
            "both must be equal");
  EXPECT_EQ(MessageOf(device(), batch, [](int64_t* offsets) { offsets[2] = 116; }),
            "row 1: /pn/edge_convs.0/TopK: TopK takes K = 17 elements along an axis of 16; give "
            "inputs of at least that size");
}

INSTANTIATE_TEST_SUITE_P(, RaggedTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
