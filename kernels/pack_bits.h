// Codes of 1 to 8 bits, eight to a unit of `bits` bytes.
//
//   bit j * bits of a unit   the lowest bit of its code number j; bits count from the lowest of the
//                            first byte
//
// A unit never shares a byte with another, so a shard can be cut at any eighth code. The codes that
// the last unit lacks are 0. Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_PACK_BITS_H_
#define THINWIRE_KERNELS_PACK_BITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kCodesInUnit = 8;

// The bytes of COUNT codes of BITS bits.
constexpr size_t PackedBytes(size_t count, int bits) {
  return (count + kCodesInUnit - 1) / kCodesInUnit * static_cast<size_t>(bits);
}

// REQUIRES, for both: 1 <= bits <= 8; PACKED points to PackedBytes(codes.size(), bits) bytes.

// REQUIRES: every code below 2^bits.
void PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed);

void UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_PACK_BITS_H_
