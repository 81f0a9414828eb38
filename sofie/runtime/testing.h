// Helpers for tests: of errors, and of what is done with models.
#ifndef SOFIE_RUNTIME_TESTING_H_
#define SOFIE_RUNTIME_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "sofie/runtime/model_info.h"

namespace sofie {

// A model of which nothing but the inputs is looked at.
inline ModelInfo ModelOf(std::span<const TensorInfo> inputs) {
  static const uint8_t hash[32] = {};
  return {.name = "m",
          .cpp_namespace = "m",
          .generator_version = "",
          .symbols = {},
          .inputs = inputs,
          .outputs = {},
          .buffers = {},
          .steps = {},
          .graph_hash = hash,
          .weights_bytes = 0,
          .buffer_bytes = nullptr,
          .output_shapes = nullptr};
}

// Expects `action` to throw exactly an E with this message.
template <class E, class Action>
void ExpectThrows(const Action& action, const std::string& message) {
  try {
    action();
    ADD_FAILURE() << "nothing thrown; expected: " << message;
  } catch (const E& error) {
    EXPECT_EQ(error.what(), message);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type of exception: " << error.what();
  }
}

}  // namespace sofie

#endif  // SOFIE_RUNTIME_TESTING_H_
