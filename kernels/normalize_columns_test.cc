#include "kernels/normalize_columns.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = 0.37f * (static_cast<float>(random() % 999) - 500);
  return values;
}

double Product(const std::vector<float>& matrix, size_t rows, size_t a, size_t b) {
  double sum = 0;
  for (size_t i = 0; i < rows; ++i) sum += double{matrix[a * rows + i]} * matrix[b * rows + i];
  return sum;
}

// Returns the sum of the squares of the values whose index modulo PARTS is PART.
double SumOfSquares(const std::vector<float>& values, size_t part, size_t parts) {
  if (parts < 256) {
    return SumOfSquares(values, part, 2 * parts) + SumOfSquares(values, part + parts, 2 * parts);
  }
  double sum = 0;
  for (size_t i = part; i < values.size(); i += parts) sum += double{values[i]} * values[i];
  return sum;
}

TEST(OrthonormalizeTest, ColumnsAreOrthogonalAndOfLengthOne) {
  for (const size_t rows : {32, 255, 256, 257, 1000}) {
    std::vector<float> matrix = Values(32 * rows, 1);
    Orthonormalize(rows, matrix);
    for (size_t a = 0; a < 32; ++a) {
      for (size_t b = 0; b <= a; ++b) {
        ASSERT_NEAR(Product(matrix, rows, a, b), a == b ? 1 : 0, 1e-5) << rows << " rows";
      }
    }
  }
}

TEST(OrthonormalizeTest, SumsInTheDocumentedOrder) {
  for (const size_t rows : {1, 2, 100, 128, 129, 255, 256, 257, 1000, 5000}) {
    const std::vector<float> column = Values(rows, 2);
    std::vector<float> got = column;
    Orthonormalize(rows, got);
    const double length = std::sqrt(SumOfSquares(column, 0, 1));
    for (size_t i = 0; i < rows; ++i) ASSERT_EQ(got[i], static_cast<float>(column[i] / length));
  }
}

TEST(OrthonormalizeTest, DependentColumnsBecomeZero) {
  constexpr size_t kRows = 40;
  const std::vector<float> first = Values(kRows, 3);
  std::vector<float> matrix = first;
  for (const float value : first) matrix.push_back(-0.3f * value);
  matrix.resize(4 * kRows);  // a column of zeros, and one whose squares are subnormal floats
  for (size_t i = 0; i < kRows; ++i) matrix[3 * kRows + i] = i % 2 == 0 ? 1e-30f : 0;
  Orthonormalize(kRows, matrix);
  for (size_t i = kRows; i < 3 * kRows; ++i) ASSERT_EQ(matrix[i], 0);
  EXPECT_NEAR(Product(matrix, kRows, 3, 3), 1, 1e-6);
}

TEST(ScaleColumnsTest, ScalesEachColumnByAPowerOfTwo) {
  constexpr float kMin = std::numeric_limits<float>::denorm_min();
  constexpr float kMax = std::numeric_limits<float>::max();
  std::vector<float> matrix = {3, -0.5f, kMin, -3 * kMin, kMax, -1, 1, 0};
  ScaleColumns(2, matrix);
  EXPECT_EQ(matrix,
            (std::vector<float>{1.5f, -0.25f, 0.5f, -1.5f, kMax * 0x1p-127f, -0x1p-127f, 1, 0}));
}

TEST(ScaleColumnsTest, DrawsColumnsThatAreZeroOrNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> matrix = {0, -0.0f, 0, 1, -kInfinity, 0, NAN, 2, 3, 4, 2, 0};
  ScaleColumns(3, matrix);
  for (size_t i = 0; i < 9; ++i) {
    ASSERT_EQ(matrix[i], DrawnValue(i));
    ASSERT_LE(std::abs(matrix[i]), 1);
  }
  EXPECT_EQ(std::vector<float>(matrix.begin() + 9, matrix.end()), (std::vector<float>{1, 0.5f, 0}));
}

}  // namespace
}  // namespace thinwire::kernels
