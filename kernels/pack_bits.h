// Packs codes of 1 to 8 bits, eight codes into a unit of `bits` bytes. Code j of a unit begins at
// bit j * bits. Bit 0 is the lowest bit of the unit's first byte. Units do not share bytes, so an
// array can be split after every eighth code. If the last unit has fewer than eight codes, its
// unused bits are 0. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_PACK_BITS_H_
#define THINWIRE_KERNELS_PACK_BITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kCodesInUnit = 8;

// Returns the number of bytes that COUNT packed codes of BITS bits occupy.
constexpr size_t PackedBytes(size_t count, int bits) {
  return (count + kCodesInUnit - 1) / kCodesInUnit * static_cast<size_t>(bits);
}

// REQUIRES, for both functions: 1 <= bits <= 8; PACKED points to PackedBytes(codes.size(), bits)
// bytes.

// REQUIRES: every code is less than 2^bits.
void PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed);

void UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_PACK_BITS_H_
