// MixBits() is a stateless random number generator: MixBits(seed + i) is the i-th number of a
// stream, and is the same on every machine. It is the output function of SplitMix64 (Steele, Lea
// and Flood 2014). Pure function; thread-safe.
#ifndef THINWIRE_KERNELS_MIX_BITS_H_
#define THINWIRE_KERNELS_MIX_BITS_H_

#include <cstdint>

namespace thinwire::kernels {

constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_MIX_BITS_H_
