#include "sofie/runtime/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace sofie::vector_math {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Range {
  float low;
  float high;
};

// Numbers of a range, evenly spread and, towards 0, of every magnitude.
std::vector<float> Numbers(Range range) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> even(range.low, range.high);
  std::uniform_real_distribution<float> power(-44, 0);
  std::vector<float> numbers = {range.low, range.high};
  for (int i = 0; i < 200000; ++i) {
    numbers.push_back(even(random));
    numbers.push_back((i % 2 == 0 ? range.low : range.high) * std::pow(10.0f, power(random)));
  }
  return numbers;
}

// The largest error in units of the last place of results, computed in a loop as kernels are.
template <class Function, class Reference>
double Error(Range range, const Function& function, const Reference& reference) {
  const std::vector<float> x = Numbers(range);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = function(x[i]);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = reference(static_cast<double>(x[i]));
    const float size = std::abs(static_cast<float>(expected));
    if (std::isinf(size)) {
      EXPECT_EQ(y[i], static_cast<float>(expected)) << x[i];
      continue;
    }
    const double unit = static_cast<double>(std::nextafter(size, kInf)) - static_cast<double>(size);
    most = std::max(most, std::abs(static_cast<double>(y[i]) - expected) / unit);
  }
  return most;
}

TEST(VectorMathTest, ErrorsAreSmall) {
  EXPECT_LT(Error({-110, 100}, Exp, [](double x) { return std::exp(x); }), 1.1);
  EXPECT_LT(Error({-86, -0.0f}, ExpOfNonPositive, [](double x) { return std::exp(x); }), 1.1);
  EXPECT_LT(Error({-100, 100}, Expm1, [](double x) { return std::expm1(x); }), 2);
  EXPECT_LT(Error({-0.4f, 0.4f}, Expm1, [](double x) { return std::expm1(x); }), 2);
  EXPECT_LT(Error({0, 3e38f}, Log, [](double x) { return std::log(x); }), 1);
  EXPECT_LT(Error({0.5f, 2}, Log, [](double x) { return std::log(x); }), 1);
  EXPECT_LT(Error({0, 1}, Log1pOfFraction, [](double x) { return std::log1p(x); }), 2);
  EXPECT_LT(Error({-12, 12}, Tanh, [](double x) { return std::tanh(x); }), 3);
  EXPECT_LT(Error({-5, 5}, Erf, [](double x) { return std::erf(x); }), 3);
  EXPECT_LT(Error({-1e6f, 1e6f}, Sin, [](double x) { return std::sin(x); }), 4);
  EXPECT_LT(Error({-1e6f, 1e6f}, Cos, [](double x) { return std::cos(x); }), 4);
}

template <class Function>
void ExpectEach(const Function& function, const std::vector<float>& x,
                const std::vector<float>& expected) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float y = function(x[i]);
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(y)) << x[i] << ": " << y;
    } else {
      EXPECT_EQ(y, expected[i]) << x[i];
      EXPECT_EQ(std::signbit(y), std::signbit(expected[i])) << x[i];
    }
  }
}

TEST(VectorMathTest, EndsOfRanges) {
  ExpectEach(Exp, {-kInf, -1000, -0.0f, 0, 1000, kInf, kNaN}, {0, 0, 1, 1, kInf, kInf, kNaN});
  ExpectEach(ExpOfNonPositive, {-kInf, -1000, -0.0f, 0, kNaN}, {0, 0, 1, 1, kNaN});
  ExpectEach(Expm1, {-kInf, -1000, 0, 1000, kInf, kNaN}, {-1, -1, 0, kInf, kInf, kNaN});
  ExpectEach(Log, {-kInf, -1, -0.0f, 0, 1, kInf, kNaN}, {kNaN, kNaN, -kInf, -kInf, 0, kInf, kNaN});
  ExpectEach(Log1pOfFraction, {0, kNaN}, {0, kNaN});
  ExpectEach(Tanh, {-kInf, -100, -0.0f, 0, 100, kInf, kNaN}, {-1, -1, -0.0f, 0, 1, 1, kNaN});
  ExpectEach(Erf, {-kInf, -100, -0.0f, 0, 100, kInf, kNaN}, {-1, -1, -0.0f, 0, 1, 1, kNaN});
  ExpectEach(Sin, {-0.0f, 0, kInf, kNaN}, {-0.0f, 0, kNaN, kNaN});
  ExpectEach(Cos, {0, kInf, kNaN}, {1, kNaN, kNaN});
}

}  // namespace
}  // namespace sofie::vector_math
