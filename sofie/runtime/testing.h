// Helpers for tests of errors.
#ifndef SOFIE_RUNTIME_TESTING_H_
#define SOFIE_RUNTIME_TESTING_H_

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace sofie {

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
