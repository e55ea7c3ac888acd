// Maps values v to small integer codes and back through a table. Arrays hold one element per value.
//
//   CodesOfMagnitudes   code = (number of thresholds <= |v|) | sign << (bits - 1)
//   CodesOfSteps        code = v / step + zero, rounded half up and clamped to 0 .. 255
//   CodesOfLevels       code = trunc(|v| / largest * count + draw / 2^16), at most count,
//                              | sign << (bits - 1)
//   LookUp              out = table[code]
//   LookUpAdd           sum += table[code]
//
// `largest` is the largest magnitude, `count` the number of levels above 0, and `draw` a random
// 16-bit number per value. The code of -0.0 has its sign bit set. For a NaN, the code without its
// sign bit is 0. Results are the same on every machine. Uses Highway vector instructions. Pure
// functions; thread-safe.
#ifndef THINWIRE_KERNELS_CODES_H_
#define THINWIRE_KERNELS_CODES_H_

#include <cstdint>
#include <span>

namespace thinwire::kernels {

// Maximum number of table entries: one for every 8-bit code.
inline constexpr size_t kLargestTable = 256;

// REQUIRES: 1 <= bits <= 8; thresholds.size() == 2^(bits - 1) - 1; THRESHOLDS are in ascending
// order; codes.size() == values.size().
void CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                       std::span<uint8_t> codes);

// REQUIRES: step > 0; 0 <= zero <= 255; codes.size() == values.size().
void CodesOfSteps(std::span<const float> values, float step, float zero, std::span<uint8_t> codes);

struct Levels {
  float largest;  // largest magnitude of the values; 0 if all are 0
  float count;
  int bits;
};

// REQUIRES: 1 <= count < 2^(bits - 1); bits <= 8; the arrays have equal lengths.
void CodesOfLevels(std::span<const float> values, const Levels& levels,
                   std::span<const uint16_t> draws, std::span<uint8_t> codes);

// REQUIRES, for both functions: every code is below table.size() <= kLargestTable; the arrays of
// codes and values have equal lengths.
void LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out);
void LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_CODES_H_
