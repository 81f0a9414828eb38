// Three models in one program, through their typed interfaces, their runs interleaved.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "models/cnn.h"
#include "models/mlp.h"
#include "models/particle_net.h"
#include "tests/model_testing.h"

namespace sofie::model_testing {
namespace {

class ThreeModelsTest : public BackendTest {};

// Expects a result in host memory to be that of the case.
void ExpectResult(const View<const float>& result, const ModelCase& model_case) {
  EXPECT_EQ(result.memory, Memory::kHost);
  EXPECT_EQ(Compare(result, model_case.outputs[0]), "") << model_case.description;
}

particle_net::Inputs ParticleNetInputs(const ModelCase& model_case) {
  return {
      .pf_points = ViewOf<float>(model_case.inputs[0]),
      .pf_features = ViewOf<float>(model_case.inputs[1]),
      .pf_mask = ViewOf<float>(model_case.inputs[2]),
      .sv_points = ViewOf<float>(model_case.inputs[3]),
      .sv_features = ViewOf<float>(model_case.inputs[4]),
      .sv_mask = ViewOf<float>(model_case.inputs[5]),
  };
}

TEST_P(ThreeModelsTest, Interleaved) {
  particle_net::Session particle_net_session(device());
  mlp::Session mlp_session(device());
  cnn::Session cnn_session(device());
  const std::vector<std::string> particle_net_sizes = {"N=7,n_pf=33,n_sv=3", "N=0,n_pf=100,n_sv=10",
                                                       "N=1,n_pf=100,n_sv=10"};
  const std::vector<std::string> row_counts = {"N=7", "N=0", "N=100"};
  const std::vector<std::string> image_counts = {"N=3", "N=20", "N=0"};
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < row_counts.size(); ++i) {
      const ModelCase jets =
          ReadCase("particle_net_test", particle_net_sizes[i], particle_net::Info());
      const ModelCase rows = ReadCase("mlp_test", row_counts[i], mlp::Info());
      const ModelCase images = ReadCase("cnn_test", image_counts[i], cnn::Info());
      // All results are looked at after all runs: none lies in memory that another model uses.
      const particle_net::Outputs jet_tags = particle_net_session.Run(ParticleNetInputs(jets));
      const mlp::Outputs row_tags = mlp_session.Run({.features = ViewOf<float>(rows.inputs[0])});
      const cnn::Outputs image_tags = cnn_session.Run({.image = ViewOf<float>(images.inputs[0])});
      ExpectResult(jet_tags.softmax, jets);
      ExpectResult(row_tags.probabilities, rows);
      ExpectResult(image_tags.probabilities, images);
    }
  }
}

TEST_P(ThreeModelsTest, IntoTheCallersMemory) {
  cnn::Session session(device());
  for (const char* sizes : {"N=20", "N=1", "N=3"}) {
    const ModelCase images = ReadCase("cnn_test", sizes, cnn::Info());
    CaseTensor result = Poisoned(images.outputs[0].tensor);
    session.Run({.image = ViewOf<float>(images.inputs[0])},
                {.probabilities = {reinterpret_cast<float*>(result.data.data()), result.shape}});
    EXPECT_EQ(Compare(result.view(), images.outputs[0]), "") << sizes;
  }
}

// A session that ends frees what is its own, not the weights of another.
TEST_P(ThreeModelsTest, SessionsEndInAnyOrder) {
  const ModelCase rows = ReadCase("mlp_test", "N=7", mlp::Info());
  const ModelCase images = ReadCase("cnn_test", "N=3", cnn::Info());
  auto first = mlp::NewSession(device());
  auto second = mlp::NewSession(device());
  auto third = cnn::NewSession(device());
  first.reset();
  ExpectRuns(*second, rows);
  ExpectRuns(*third, images);
  third.reset();
  ExpectRuns(*second, rows);
  second.reset();
  ExpectRuns(*mlp::NewSession(device()), rows);
}

TEST(ThreeModelsInfoTest, EachKnowsItself) {
  const std::vector<const ModelInfo*> models = {&particle_net::Info(), &mlp::Info(), &cnn::Info()};
  std::set<std::string> names;
  std::set<std::string> hashes;
  for (const ModelInfo* info : models) {
    names.insert(info->name);
    hashes.emplace(info->graph_hash.begin(), info->graph_hash.end());
  }
  EXPECT_EQ(names, (std::set<std::string>{"particle_net", "mlp", "cnn"}));
  EXPECT_EQ(hashes.size(), models.size());
}

INSTANTIATE_TEST_SUITE_P(, ThreeModelsTest, OnEachBackend(), BackendName);

}  // namespace
}  // namespace sofie::model_testing
