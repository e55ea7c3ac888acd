#include "kernels/normalize_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/reductions.h"

namespace thinwire::kernels {
namespace {

// Returns the sum of term(i) for all rows i < ROWS.
template <typename Term>
double SumOverRows(size_t rows, const Term& term) {
  std::array<double, kColumnParts> parts = {};
  for (size_t first = 0; first < rows; first += kColumnParts) {
    const size_t count = std::min(kColumnParts, rows - first);
    for (size_t part = 0; part < count; ++part) parts[part] += term(first + part);
  }
  for (size_t half = kColumnParts / 2; half > 0; half /= 2) {
    for (size_t part = 0; part < half; ++part) parts[part] += parts[part + half];
  }
  return parts[0];
}

double Length(std::span<const double> column) {
  return std::sqrt(SumOverRows(column.size(), [&](size_t i) { return column[i] * column[i]; }));
}

}  // namespace

void Orthonormalize(size_t rows, std::span<float> matrix) {
  std::vector<double> column(rows);
  for (size_t begin = 0; begin < matrix.size(); begin += rows) {
    const std::span<float> out = matrix.subspan(begin, rows);
    std::ranges::copy(out, column.begin());
    const double before = Length(column);
    for (size_t other = 0; other < begin; other += rows) {
      const double product =
          SumOverRows(rows, [&](size_t i) { return column[i] * double{matrix[other + i]}; });
      for (size_t i = 0; i < rows; ++i) column[i] -= product * double{matrix[other + i]};
    }
    const double after = Length(column);
    const bool independent = after > kDependent * before;
    for (size_t i = 0; i < rows; ++i) {
      out[i] = independent ? static_cast<float>(column[i] / after) : 0;
    }
  }
}

void ScaleColumns(size_t rows, std::span<float> matrix) {
  for (size_t begin = 0; begin < matrix.size(); begin += rows) {
    const std::span<float> column = matrix.subspan(begin, rows);
    const float largest = LargestMagnitude(column);
    if (!(largest > 0) || std::isinf(largest)) {
      for (size_t i = 0; i < rows; ++i) column[i] = DrawnValue(begin + i);
      continue;
    }
    const double factor = ColumnFactor(largest);
    for (float& value : column) value = static_cast<float>(double{value} * factor);
  }
}

}  // namespace thinwire::kernels
