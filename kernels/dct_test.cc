#include "kernels/dct.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = 0.37f * (static_cast<float>(random() % 999) - 500);
  return values;
}

// B(k, i) in double precision.
double Basis(size_t k, size_t i) {
  const double scale = k == 0 ? 0.125 : std::sqrt(1.0 / 32);
  return scale * std::cos(std::numbers::pi * static_cast<double>(k * (2 * i + 1)) / 128);
}

// Returns row K of the table: the chunk of which InverseDct makes coefficient K alone.
std::vector<float> Row(size_t k) {
  std::vector<float> row(kDctChunk, 0.0f);
  row[k] = 1;
  InverseDct(row, row);
  return row;
}

// The transforms with the order of operations that dct.h states.
std::vector<float> PlainDct(const std::vector<float>& values) {
  std::vector<float> coefficients(values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const size_t first = k - k % kDctChunk;
    const std::vector<float> row = Row(k % kDctChunk);
    float sum = 0;
    for (size_t i = 0; i < kDctChunk / 2; ++i) {
      const float a = values[first + i], b = values[first + kDctChunk - 1 - i];
      const float product = row[i] * (k % 2 == 0 ? a + b : a - b);
      sum += product;
    }
    coefficients[k] = sum;
  }
  return coefficients;
}

std::vector<float> PlainInverse(const std::vector<float>& coefficients) {
  std::vector<float> values(coefficients.size());
  for (size_t n = 0; n < values.size(); ++n) {
    const size_t first = n - n % kDctChunk, place = n % kDctChunk;
    const bool mirrored = place >= kDctChunk / 2;
    const size_t i = mirrored ? kDctChunk - 1 - place : place;
    float sums[2] = {0, 0};
    for (size_t k = 0; k < kDctChunk; ++k) {
      const float product = coefficients[first + k] * Row(k)[i];
      sums[k % 2] += product;
    }
    values[n] = mirrored ? sums[0] - sums[1] : sums[0] + sums[1];
  }
  return values;
}

TEST(DctTest, TheTableIsTheBasisRoundedToFloat) {
  for (size_t k = 0; k < kDctChunk; ++k) {
    const std::vector<float> row = Row(k);
    for (size_t i = 0; i < kDctChunk; ++i) {
      ASSERT_EQ(row[i], static_cast<float>(Basis(k, i))) << k << " " << i;
    }
  }
}

TEST(DctTest, TheBasisIsOrthonormal) {
  for (size_t k = 0; k < kDctChunk; ++k) {
    const std::vector<float> row = Row(k);
    for (size_t l = 0; l < kDctChunk; ++l) {
      const std::vector<float> other = Row(l);
      double product = 0;
      for (size_t i = 0; i < kDctChunk; ++i) product += double{row[i]} * other[i];
      ASSERT_NEAR(product, k == l ? 1 : 0, 1e-7) << k << " " << l;
    }
  }
}

TEST(DctTest, CoefficientsEqualTheFormulaInDouble) {
  const std::vector<float> values = Values(5 * kDctChunk, 1);
  std::vector<float> coefficients(values.size());
  Dct(values, coefficients);
  for (size_t k = 0; k < values.size(); ++k) {
    double exact = 0;
    for (size_t i = 0; i < kDctChunk; ++i) {
      exact += Basis(k % kDctChunk, i) * values[k - k % kDctChunk + i];
    }
    ASSERT_NEAR(coefficients[k], exact, 2e-4) << k;
  }
}

TEST(DctTest, TheInverseGivesTheValuesBack) {
  const std::vector<float> values = Values(3 * kDctChunk, 2);
  std::vector<float> back(values.size());
  Dct(values, back);
  InverseDct(back, back);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(back[i], values[i], 3e-4) << i;
}

TEST(DctTest, EveryTargetGivesTheBitsOfThePlainLoop) {
  const std::vector<float> values = Values(4 * kDctChunk, 3);
  std::vector<float> sparse(values.size(), 0.0f);
  for (size_t i = 0; i < values.size(); i += 7) sparse[i] = values[i];
  const std::vector<float> coefficients = PlainDct(values);
  const std::vector<float> whole = PlainInverse(values), part = PlainInverse(sparse);
  OnEveryTarget([&] {
    std::vector<float> got(values.size());
    Dct(values, got);
    ASSERT_EQ(got, coefficients);
    InverseDct(values, got);
    ASSERT_EQ(got, whole);
    InverseDct(sparse, got);
    ASSERT_EQ(got, part);
  });
}

TEST(DctTest, ANanReachesItsChunkAlone) {
  std::vector<float> coefficients(2 * kDctChunk, 0.0f);
  coefficients[5] = std::numeric_limits<float>::quiet_NaN();
  InverseDct(coefficients, coefficients);
  for (size_t i = 0; i < coefficients.size(); ++i) {
    ASSERT_EQ(std::isnan(coefficients[i]), i < kDctChunk) << i;
  }
}

}  // namespace
}  // namespace thinwire::kernels
