// Reads three numbers for each event and says which events to keep.
#include <cstdint>
#include <iostream>
#include <vector>

#include "trigger.h"

int main() {
  std::vector<float> features;
  for (float value; std::cin >> value;) features.push_back(value);
  const int64_t events = static_cast<int64_t>(features.size() / 3);

  trigger::Session session(sofie::Device::Cpu());
  trigger::Outputs out = session.Run({.features = {features.data(), {events, 3}}});
  for (int64_t event = 0; event < events; ++event) {
    std::cout << (out.score.data[event] > 0 ? "keep " : "drop ") << out.score.data[event] << "\n";
  }
}
