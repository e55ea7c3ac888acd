// Levels of the largest magnitude of each 512 values, rounded at random without a bias (qsgd): each
// group in one pass, from its values to their packed codes, and back.
//
//   a = the largest magnitude;   c = trunc(|v| / a * levels + draw / 2^16), up to levels
//   code = c | sign << (bits - 1);   its value is +- a (c / levels)
//
// The draw of value i is 16 bits, number i mod 4, of MixBits(draw + i / 4). What
// common/codec/qsgd.cc does, to the bit. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_LEVELS_H_
#define THINWIRE_KERNELS_CUDA_LEVELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kLevelGroup = 512;

// How values are coded. REQUIRES: 1 <= levels < 2^(bits - 1); bits <= 8.
struct LevelCode {
  int levels;
  int bits;
  uint64_t draw = 0;  // for encoding
};

// Where each group's number, a float at any address, and the packed codes lie on the device.
struct LevelBytes {
  std::byte* numbers;
  std::byte* codes;
};

Status EncodeLevels(std::span<const float> values, const LevelCode& code, const LevelBytes& out,
                    const Stream& stream);
// The same of v = residual + gradient; residual becomes what was lost of v. REQUIRES: equal
// lengths.
Status EncodeLevelsFeedback(std::span<const float> gradient, std::span<float> residual,
                            const LevelCode& code, const LevelBytes& out, const Stream& stream);

// out = scale * the values
Status DecodeLevels(const LevelBytes& from, const LevelCode& code, float scale,
                    std::span<float> out, const Stream& stream);
// sum += scale * the values
Status DecodeLevelsAdd(const LevelBytes& from, const LevelCode& code, float scale,
                       std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_LEVELS_H_
