// Histograms of a tagger's scores, as a picture.
#ifndef EXAMPLES_SCORE_PLOT_H_
#define EXAMPLES_SCORE_PLOT_H_

#include <string>
#include <vector>

namespace examples {

// The scores of one class.
struct ScorePanel {
  std::string title;
  std::vector<float> signal;  // of the jets that are of the class
  std::vector<float> others;  // of all other jets; all jets if the truth is not known
};

// Writes an SVG file with a panel for each class: the distributions of its scores, from 0 to 1,
// each of unit sum, on a logarithmic scale. Throws std::runtime_error if the file can't be written.
void WriteScorePlot(const std::string& path, const std::vector<ScorePanel>& panels);

}  // namespace examples

#endif  // EXAMPLES_SCORE_PLOT_H_
