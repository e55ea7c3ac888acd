#include "kernels/radix_select.h"

#include <array>

namespace thinwire::kernels {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kBins = size_t{1} << kDigitBits;

// Keeps of VALUES those whose digit at SHIFT is that of the k-th largest, and lowers K by the
// number above them.
std::span<uint32_t> KeepDigit(std::span<uint32_t> values, int shift, uint32_t mask, size_t& k) {
  // Two tables, since neighbours often share a bin and would wait for each other's count.
  std::array<uint32_t, kBins> even{}, odd{};
  size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    ++even[(values[i] >> shift) & mask];
    ++odd[(values[i + 1] >> shift) & mask];
  }
  if (i < values.size()) ++even[(values[i] >> shift) & mask];

  uint32_t digit = mask;
  for (size_t in_bin; (in_bin = size_t{even[digit]} + odd[digit]) < k; --digit) k -= in_bin;

  size_t kept = 0;
  for (const uint32_t value : values) {
    values[kept] = value;  // kept never passes the reader
    kept += ((value >> shift) & mask) == digit ? 1 : 0;
  }
  return values.first(kept);
}

}  // namespace

KthValue KthLargest(std::span<uint32_t> values, size_t k) {
  size_t left = k;
  values = KeepDigit(values, 20, 0x7FF, left);
  values = KeepDigit(values, 10, 0x3FF, left);
  values = KeepDigit(values, 0, 0x3FF, left);
  return {.value = values[0], .above_count = k - left};
}

}  // namespace thinwire::kernels
