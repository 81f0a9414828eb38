#include "examples/score_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace examples {
namespace {

constexpr int kBins = 25;
constexpr int kColumns = 4;
constexpr double kDecades = 4;  // the vertical axis goes from 1e-4 to 1
// In pixels.
constexpr double kWidth = 200, kHeight = 140, kLeft = 45, kTop = 30, kGap = 45;

using Histogram = std::array<double, kBins>;  // of unit sum, or all 0

Histogram Fill(const std::vector<float>& scores) {
  Histogram histogram{};
  for (const float score : scores) {
    const int bin = static_cast<int>(static_cast<double>(score) * kBins);
    histogram[std::clamp(bin, 0, kBins - 1)] += 1.0 / static_cast<double>(scores.size());
  }
  return histogram;
}

// The outline of a histogram as an SVG path in the panel's frame.
std::string Outline(const Histogram& histogram) {
  std::string path;
  for (int bin = 0; bin < kBins; ++bin) {
    const double decades = histogram[bin] > 0 ? -std::log10(histogram[bin]) : kDecades;
    const std::string y = std::to_string(std::min(decades / kDecades, 1.0) * kHeight);
    for (const int edge : {bin, bin + 1}) {
      path += (path.empty() ? "M" : " L") + std::to_string(edge * kWidth / kBins) + "," + y;
    }
  }
  return path;
}

void Text(std::ostream& out, double x, double y, const char* anchor, const std::string& text) {
  out << "<text x='" << x << "' y='" << y << "' text-anchor='" << anchor << "'>" << text
      << "</text>\n";
}

void Curve(std::ostream& out, const std::vector<float>& scores, const char* colour) {
  if (scores.empty()) return;
  out << "<path d='" << Outline(Fill(scores)) << "' fill='none' stroke='" << colour
      << "' stroke-width='1.5'/>\n";
}

}  // namespace

void WriteScorePlot(const std::string& path, const std::vector<ScorePanel>& panels) {
  const size_t rows = (panels.size() + kColumns - 1) / kColumns;
  std::ofstream out(path);
  out << "<svg xmlns='http://www.w3.org/2000/svg' font-family='sans-serif' font-size='11' width='"
      << kColumns * (kWidth + kGap) + kLeft << "' height='"
      << static_cast<double>(rows) * (kHeight + 2 * kGap) + kTop
      << "'>\n<rect width='100%' height='100%' fill='white'/>\n";
  Text(out, kLeft, 16, "start",
       "Scores of jets of the class (red) and of the others (blue), parts of 1");
  for (size_t i = 0; i < panels.size(); ++i) {
    const double x = kLeft + static_cast<double>(i % kColumns) * (kWidth + kGap);
    const double y = kTop + kGap / 2 + static_cast<double>(i / kColumns) * (kHeight + 2 * kGap);
    out << "<g transform='translate(" << x << "," << y << ")'>\n<rect width='" << kWidth
        << "' height='" << kHeight << "' fill='none' stroke='black'/>\n";
    Text(out, kWidth / 2, -6, "middle", panels[i].title);
    for (const char* score : {"0", "0.5", "1"}) {
      Text(out, std::stod(score) * kWidth, kHeight + 15, "middle", score);
    }
    for (int decade = 0; decade <= kDecades; ++decade) {
      Text(out, -4, decade / kDecades * kHeight + 4, "end",
           decade == 0 ? "1" : "1e-" + std::to_string(decade));
    }
    Curve(out, panels[i].others, "#1f5fb4");
    Curve(out, panels[i].signal, "#c8281e");
    out << "</g>\n";
  }
  out << "</svg>\n";
  if (!out.flush()) throw std::runtime_error(path + ": the file can't be written.");
}

}  // namespace examples
