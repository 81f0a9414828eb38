// Jets in memory, and the files they come from.
#ifndef EXAMPLES_JETS_H_
#define EXAMPLES_JETS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

inline constexpr int64_t kPointAxes = 2;          // Δη, Δφ from the jet axis
inline constexpr int64_t kParticleFeatures = 20;  // as listed in models/training/jet_features.py
inline constexpr int64_t kVertexFeatures = 11;

// What a jet holds of one kind, particles or vertices, for all jets one after another: jet j owns
// the rows from offsets[j] up to offsets[j + 1].
struct Constituents {
  std::vector<int64_t> offsets;  // [jets + 1]
  int64_t feature_count = 0;
  std::vector<float> points;    // [rows, kPointAxes]
  std::vector<float> features;  // [rows, feature_count]

  int64_t Count(int64_t jet) const { return offsets[jet + 1] - offsets[jet]; }
};

struct Jets {
  Constituents particles;
  Constituents vertices;
  std::vector<int32_t> labels;  // [jets]: the true class; empty if the file doesn't say

  int64_t size() const { return static_cast<int64_t>(particles.offsets.size()) - 1; }
};

// Reads jets from
//   *.npz  the arrays pf_offsets, pf_points, pf_features, sv_offsets, sv_points and sv_features,
//          and label if there is one, that models/training/make_jets.py describes; others in the
//          file are not looked at.
//   *.npy  one float32 array [jets, particles, 22], a particle being Δη, Δφ and its 20 features;
//          the jets have no vertices. Particles that are all zero at the end of a jet are padding
//          and left out.
// Throws std::runtime_error, whose message names the file, the array and what to do.
Jets ReadJets(const std::string& path);

}  // namespace examples

#endif  // EXAMPLES_JETS_H_
