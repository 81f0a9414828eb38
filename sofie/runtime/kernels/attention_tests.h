#ifndef SOFIE_RUNTIME_KERNELS_ATTENTION_TESTS_H_
#define SOFIE_RUNTIME_KERNELS_ATTENTION_TESTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "sofie/runtime/error.h"
#include "sofie/runtime/float16.h"
#include "sofie/runtime/kernels/kernel_testing.h"

namespace sofie::kernels::testing {

// What a test compiles a kernel for.
template <class S, int kQ, int kV, bool kP = false, bool kBias = false, bool kCap = false,
          bool kM = true>
struct AttentionClass {
  using Stored = S;
  using Number = std::conditional_t<std::is_same_v<S, double>, double, float>;
  static constexpr int kDepth = kQ;
  static constexpr int kValueDepth = kV;
  static constexpr bool kPacked = kP;
  static constexpr bool kHasBias = kBias;
  static constexpr bool kHasSoftCap = kCap;
  static constexpr bool kMasks = kM;
};

// Operands [rows, heads, channels], those of a sequence `rows` or `keys` after those of the one
// before it, or from where the cumulative lengths say.
template <class I, class Class>
struct PlainAttention : Class {
  using typename Class::Number;
  using S = typename Class::Stored;
  static constexpr bool kHasSums = true;

  const S* query;
  const S* key;
  const S* value;
  const Number* bias;  // [heads, rows, keys]
  const int32_t* row_ends;
  const int32_t* key_ends;
  S* out;
  Number* sums;  // [rows, heads]
  I heads, key_heads, rows, keys;
  I before, after;  // how far a row sees
  I shift;          // the position of row 0

  ALPAKA_FN_ACC I Row(I b, I row) const { return Class::kPacked ? row : b * rows + row; }
  ALPAKA_FN_ACC I RowOfKey(I b, I row) const { return Class::kPacked ? row : b * keys + row; }
  ALPAKA_FN_ACC Number Query(I b, I h, I row, I c) const {
    return Number{query[(Row(b, row) * heads + h) * Class::kDepth + c]};
  }
  ALPAKA_FN_ACC Number Key(I b, I g, I row, I c) const {
    return Number{key[(RowOfKey(b, row) * key_heads + g) * Class::kDepth + c]};
  }
  ALPAKA_FN_ACC Number Value(I b, I g, I row, I c) const {
    return Number{value[(RowOfKey(b, row) * key_heads + g) * Class::kValueDepth + c]};
  }
  ALPAKA_FN_ACC Number Bias(I, I h, I row, I k) const { return bias[(h * rows + row) * keys + k]; }
  ALPAKA_FN_ACC I FirstRow(I b) const { return Class::kPacked ? row_ends[b] : 0; }
  ALPAKA_FN_ACC I EndRow(I b) const { return Class::kPacked ? row_ends[b + 1] : rows; }
  ALPAKA_FN_ACC I FirstKey(I b, I row) const {
    const I first = Class::kPacked ? key_ends[b] : 0;
    return Maximum<I>(first, first + row - FirstRow(b) + shift - before);
  }
  ALPAKA_FN_ACC I EndKey(I b, I row) const {
    const I first = Class::kPacked ? key_ends[b] : 0;
    const I end = Class::kPacked ? key_ends[b + 1] : keys;
    return Minimum<I>(end, first + row - FirstRow(b) + shift + after + 1);
  }
  ALPAKA_FN_ACC void Store(I b, I h, I row, I c, Number mean) const {
    out[(Row(b, row) * heads + h) * Class::kValueDepth + c] = S(mean);
  }
  ALPAKA_FN_ACC void StoreSum(I b, I h, I row, Number sum) const {
    sums[Row(b, row) * heads + h] = sum;
  }
};

// The same of operands of 16 bits, whose rows' addresses it tells.
template <class I, class Class>
struct RowAttention : PlainAttention<I, Class> {
  using S = typename Class::Stored;

  ALPAKA_FN_ACC const S* QueryRow(I b, I h, I row) const {
    return this->query + (this->Row(b, row) * this->heads + h) * Class::kDepth;
  }
  ALPAKA_FN_ACC const S* KeyRow(I b, I g, I row) const {
    return this->key + (this->RowOfKey(b, row) * this->key_heads + g) * Class::kDepth;
  }
  ALPAKA_FN_ACC const S* ValueRow(I b, I g, I row) const {
    return this->value + (this->RowOfKey(b, row) * this->key_heads + g) * Class::kValueDepth;
  }
  ALPAKA_FN_ACC S* OutRow(I b, I h, I row) const {
    return this->out + (this->Row(b, row) * this->heads + h) * Class::kValueDepth;
  }
};

// Sizes of a test. Empty lengths: `batch` sequences of `rows` and `keys` each.
struct AttentionCase {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t rows = 1;
  int64_t keys = 1;
  std::vector<int32_t> row_lengths = {};
  std::vector<int32_t> key_lengths = {};
  int64_t behind = 0;  // rows behind the last sequence
  int64_t before = 1 << 20;
  int64_t after = 1 << 20;
  int64_t shift = 0;
  double scale = 0.25;
  double soft_cap = 0;
  int64_t skipped = 0;  // elements of memory before an operand's and the result's first
};

template <class B>
class AttentionTest : public ::testing::Test {
 protected:
  static std::vector<int32_t> Ends(const std::vector<int32_t>& lengths) {
    std::vector<int32_t> ends(lengths.size() + 1, 0);
    std::partial_sum(lengths.begin(), lengths.end(), ends.begin() + 1);
    return ends;
  }

  // Runs a case and holds it to float64.
  template <class Class, template <class, class> class Body = PlainAttention>
  void Hold(AttentionCase c, double tolerance) {
    using S = typename Class::Stored;
    using T = typename Class::Number;
    constexpr int64_t kDepth = Class::kDepth;
    constexpr int64_t kValueDepth = Class::kValueDepth;
    if constexpr (!Class::kPacked) {
      c.row_lengths.assign(c.batch, static_cast<int32_t>(c.rows));
      c.key_lengths.assign(c.batch, static_cast<int32_t>(c.keys));
    }
    const std::vector<int32_t> row_ends = Ends(c.row_lengths);
    const std::vector<int32_t> key_ends = Ends(c.key_lengths);
    const int64_t all_rows = row_ends.back() + c.behind;
    const int64_t all_keys = key_ends.back();
    if constexpr (Class::kPacked) {
      c.batch = static_cast<int64_t>(c.row_lengths.size());
      c.rows = all_rows;
      c.keys = all_keys;
    }
    const std::vector<S> q = RandomVector<S>(c.skipped + all_rows * c.heads * kDepth, 1);
    const std::vector<S> k = RandomVector<S>(c.skipped + all_keys * c.key_heads * kDepth, 2);
    const std::vector<S> v = RandomVector<S>(c.skipped + all_keys * c.key_heads * kValueDepth, 3);
    std::vector<T> bias = RandomVector<T>(Class::kHasBias ? c.heads * c.rows * c.keys : 0, 4);
    // Some keys are masked, and all of row 1.
    for (size_t i = 0; i < bias.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / c.keys % c.rows;
      if (i % 5 == 3 || row == 1) bias[i] = -std::numeric_limits<T>::infinity();
    }
    Array<B, S> q_array(q), k_array(k), v_array(v),
        out(c.skipped + all_rows * c.heads * kValueDepth);
    Array<B, T> bias_array(bias), sums(all_rows * c.heads);
    Array<B, int32_t> row_array(row_ends), key_array(key_ends);
    const AttentionArgs args{.batch = c.batch,
                             .heads = c.heads,
                             .key_heads = c.key_heads,
                             .rows = c.rows,
                             .keys = c.keys,
                             .scale = c.scale,
                             .soft_cap = c.soft_cap};
    Launcher<B>(*context_).Attention(args, [&]<class I>() {
      const PlainAttention<I, Class> plain{{},
                                           q_array.data() + c.skipped,
                                           k_array.data() + c.skipped,
                                           v_array.data() + c.skipped,
                                           bias_array.data(),
                                           row_array.data(),
                                           key_array.data(),
                                           out.data() + c.skipped,
                                           sums.data(),
                                           static_cast<I>(c.heads),
                                           static_cast<I>(c.key_heads),
                                           static_cast<I>(c.rows),
                                           static_cast<I>(c.keys),
                                           static_cast<I>(c.before),
                                           static_cast<I>(c.after),
                                           static_cast<I>(c.shift)};
      return Body<I, Class>{plain};
    });
    const std::vector<S>& got = out.Read(context_);
    const std::vector<T>& got_sums = sums.Read(context_);
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t h = 0; h < c.heads; ++h) {
        const int64_t g = h / (c.heads / c.key_heads);
        for (int64_t i = 0; i < c.row_lengths[b]; ++i) {
          const int64_t row = row_ends[b] + i;
          double sum = 0;
          std::vector<double> mean(kValueDepth, 0);
          const int64_t low = std::max<int64_t>(0, i + c.shift - c.before);
          const int64_t high = std::min<int64_t>(c.key_lengths[b], i + c.shift + c.after + 1);
          for (int64_t j = low; j < high; ++j) {
            const int64_t key = key_ends[b] + j;
            double score = 0;
            for (int64_t x = 0; x < kDepth; ++x) {
              score += static_cast<double>(q[c.skipped + (row * c.heads + h) * kDepth + x]) *
                       static_cast<double>(k[c.skipped + (key * c.key_heads + g) * kDepth + x]);
            }
            score *= args.scale;
            if (Class::kHasSoftCap) score = c.soft_cap * std::tanh(score / c.soft_cap);
            if (Class::kHasBias) score += bias[(h * c.rows + i) * c.keys + j];
            const double weight = std::exp(score);
            sum += weight;
            for (int64_t x = 0; x < kValueDepth; ++x) {
              mean[x] += weight * static_cast<double>(
                                      v[c.skipped + (key * c.key_heads + g) * kValueDepth + x]);
            }
          }
          for (int64_t x = 0; x < kValueDepth; ++x) {
            const double have =
                static_cast<double>(got[c.skipped + (row * c.heads + h) * kValueDepth + x]);
            if (sum > 0) {
              ASSERT_NEAR(have, mean[x] / sum, tolerance) << b << " " << h << " " << i << " " << x;
            } else if (Class::kMasks) {
              ASSERT_EQ(have, 0) << b << " " << h << " " << i << " " << x;
            } else {
              ASSERT_TRUE(std::isnan(have)) << b << " " << h << " " << i << " " << x;
            }
          }
          const double logarithm = static_cast<double>(got_sums[row * c.heads + h]);
          if (sum > 0) {
            ASSERT_NEAR(logarithm, std::log(sum), 1e-4) << b << " " << h << " " << i;
          } else {
            ASSERT_EQ(logarithm, -std::numeric_limits<double>::infinity());
          }
        }
      }
    }
    for (int64_t i = row_ends.back() * c.heads * kValueDepth; i < all_rows * c.heads * kValueDepth;
         ++i) {
      ASSERT_EQ(static_cast<double>(got[c.skipped + i]), 0);
    }
  }

  TestContext<B> context_;
};
TYPED_TEST_SUITE(AttentionTest, TestBackends);

TYPED_TEST(AttentionTest, SizesOnBothSidesOfATile) {
  using Class = AttentionClass<float, 16, 16>;
  for (const int64_t rows : {1, 2, 63, 64, 65, 130}) {
    for (const int64_t keys : {0, 1, 64, 129, 300}) {
      this->template Hold<Class>(
          {.batch = 2, .heads = 3, .key_heads = 3, .rows = rows, .keys = keys}, 1e-5);
    }
  }
  this->template Hold<Class>({.batch = 0, .rows = 3}, 0);
  this->template Hold<Class>({.batch = 2, .rows = 0}, 0);
  EXPECT_THROW(this->template Hold<Class>({.heads = 3, .key_heads = 2}, 0), ArgumentError);
}

TYPED_TEST(AttentionTest, DepthsOfAllKinds) {
  const AttentionCase sizes{.heads = 2, .key_heads = 1, .rows = 70, .keys = 90};
  this->template Hold<AttentionClass<float, 1, 1>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 40, 24>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 128, 64>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 192, 128>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 64, 256>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 300, 520>>(sizes, 1e-5);
  this->template Hold<AttentionClass<double, 72, 136>>(sizes, 1e-12);
}

TYPED_TEST(AttentionTest, NarrowTypes) {
  const AttentionCase sizes{.heads = 4, .key_heads = 2, .rows = 70, .keys = 90};
  this->template Hold<AttentionClass<Float16, 64, 64>>(sizes, 2e-3);
  this->template Hold<AttentionClass<BFloat16, 64, 64>>(sizes, 1e-2);
}

TYPED_TEST(AttentionTest, WindowsAndCausalMasks) {
  using Class = AttentionClass<float, 16, 8>;
  AttentionCase sizes{.batch = 2, .heads = 2, .key_heads = 2, .rows = 150, .keys = 150};
  sizes.after = 0;
  this->template Hold<Class>(sizes, 1e-5);
  for (const int64_t shift : {-70, -1, 60}) {
    sizes.shift = shift;
    this->template Hold<Class>(sizes, 1e-5);
  }
  sizes.shift = 0;
  for (const int64_t before : {0, 1, 70}) {
    sizes.before = before;
    this->template Hold<Class>(sizes, 1e-5);
    sizes.after = 3;
    this->template Hold<Class>(sizes, 1e-5);
  }
}

TYPED_TEST(AttentionTest, BiasesMasksAndCaps) {
  const AttentionCase sizes{
      .batch = 2, .heads = 4, .key_heads = 2, .rows = 80, .keys = 140, .soft_cap = 0.5};
  this->template Hold<AttentionClass<float, 16, 16, false, true>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 16, 16, false, true, true>>(sizes, 1e-5);
  this->template Hold<AttentionClass<float, 16, 16, false, true, false, false>>(sizes, 1e-5);
}

TYPED_TEST(AttentionTest, PackedBatches) {
  using Class = AttentionClass<float, 64, 40, true>;
  const std::vector<std::vector<int32_t>> batches = {
      {1}, {64}, {200}, {0, 0, 5}, {63, 1, 64, 65, 0, 128, 3}, {3, 0}, {}, {130, 7, 7, 7, 7}};
  for (const std::vector<int32_t>& lengths : batches) {
    for (const int64_t behind : {0, 1, 70}) {
      std::vector<int32_t> others = lengths;
      std::reverse(others.begin(), others.end());
      AttentionCase sizes{.heads = 2,
                          .key_heads = 1,
                          .row_lengths = lengths,
                          .key_lengths = others,
                          .behind = behind};
      this->template Hold<Class>(sizes, 1e-5);
      sizes.after = 0;
      this->template Hold<Class>(sizes, 1e-5);
    }
  }
}

// Operands of 16 bits in memory: where a GPU has tensor cores, these do it.
TYPED_TEST(AttentionTest, RowsOfNarrowTypes) {
  using Half = AttentionClass<Float16, 64, 64>;
  for (const int64_t rows : {1, 64, 65, 191, 192, 193, 400}) {
    for (const int64_t keys : {0, 1, 127, 128, 129, 300}) {
      this->template Hold<Half, RowAttention>(
          {.batch = 2, .heads = 3, .key_heads = 1, .rows = rows, .keys = keys}, 2e-3);
    }
  }
  for (const double scale : {-0.25, 0.0, 4.0}) {
    AttentionCase sizes{.heads = 4, .key_heads = 2, .rows = 130, .keys = 260, .scale = scale};
    this->template Hold<Half, RowAttention>(sizes, 4e-3);
    sizes.skipped = 1;
    this->template Hold<Half, RowAttention>(sizes, 4e-3);
  }
}

TYPED_TEST(AttentionTest, RowsOfAllDepths) {
  const AttentionCase sizes{.batch = 2, .heads = 2, .key_heads = 1, .rows = 140, .keys = 333};
  this->template Hold<AttentionClass<BFloat16, 8, 8>, RowAttention>(sizes, 1e-2);
  this->template Hold<AttentionClass<BFloat16, 72, 136>, RowAttention>(sizes, 1e-2);
  this->template Hold<AttentionClass<BFloat16, 128, 128>, RowAttention>(sizes, 1e-2);
  this->template Hold<AttentionClass<BFloat16, 192, 128>, RowAttention>(sizes, 1e-2);
  this->template Hold<AttentionClass<BFloat16, 256, 256>, RowAttention>(sizes, 1e-2);
}

TYPED_TEST(AttentionTest, RowsWithBiasesAndCaps) {
  AttentionCase sizes{
      .batch = 2, .heads = 4, .key_heads = 2, .rows = 150, .keys = 300, .soft_cap = 0.5};
  using Class = AttentionClass<Float16, 32, 16, false, true, true>;
  for (const int64_t shift : {0, 100, -100}) {
    for (const int64_t before : {0, 70, 1 << 20}) {
      sizes.shift = shift;
      sizes.before = before;
      sizes.after = before % 7;
      this->template Hold<Class, RowAttention>(sizes, 2e-3);
    }
  }
}

TYPED_TEST(AttentionTest, RowsOfPackedBatches) {
  using Class = AttentionClass<BFloat16, 128, 64, true>;
  const std::vector<std::vector<int32_t>> batches = {
      {1}, {127, 1, 128, 129, 0, 256, 3}, {0, 0, 5}, {}, {700, 7, 7, 7, 7}};
  for (const std::vector<int32_t>& lengths : batches) {
    for (const int64_t behind : {0, 70}) {
      std::vector<int32_t> others = lengths;
      std::reverse(others.begin(), others.end());
      AttentionCase sizes{.heads = 2,
                          .key_heads = 1,
                          .row_lengths = lengths,
                          .key_lengths = others,
                          .behind = behind};
      this->template Hold<Class, RowAttention>(sizes, 1e-2);
      sizes.after = 0;
      this->template Hold<Class, RowAttention>(sizes, 1e-2);
    }
  }
}

}  // namespace sofie::kernels::testing

#endif  // SOFIE_RUNTIME_KERNELS_ATTENTION_TESTS_H_
