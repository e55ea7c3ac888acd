#include "kernels/pack_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace thinwire::kernels {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kWordBytes = sizeof(uint64_t);

// Moves the lowest kBits bits of each of the eight bytes of WORD to adjacent positions: joins
// neighboring fields to pairs, then pairs to groups of four, then the two groups.
template <int kBits>
uint64_t JoinFields(uint64_t word) {
  constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF, kEvenPairs = 0x0000FFFF0000FFFF;
  word = (word & kEvenBytes) | (word >> 8 & kEvenBytes) << kBits;
  word = (word & kEvenPairs) | (word >> 16 & kEvenPairs) << (2 * kBits);
  return (word & 0xFFFFFFFF) | word >> 32 << (4 * kBits);
}

// Reverses JoinFields(): moves eight adjacent fields of kBits bits to the eight bytes of a word.
template <int kBits>
uint64_t SpreadFields(uint64_t word) {
  constexpr uint64_t kFour = (uint64_t{1} << (4 * kBits)) - 1;
  constexpr uint64_t kPairs = ((uint64_t{1} << (2 * kBits)) - 1) * 0x0000000100000001;
  constexpr uint64_t kFields = ((uint64_t{1} << kBits) - 1) * 0x0001000100010001;
  word = (word & kFour) | (word >> (4 * kBits) & kFour) << 32;
  word = (word & kPairs) | (word >> (2 * kBits) & kPairs) << 16;
  return (word & kFields) | (word >> kBits & kFields) << 8;
}

template <int kBits>
void Pack(std::span<const uint8_t> codes, std::byte* packed) {
  const size_t bytes = PackedBytes(codes.size(), kBits);
  uint64_t word = 0;
  size_t i = 0, at = 0;
  // Writes a word of eight bytes per unit, although a unit has only kBits bytes. The following
  // units overwrite the excess bytes.
  for (; i + kCodesInUnit <= codes.size() && at + kWordBytes <= bytes; at += kBits) {
    std::memcpy(&word, codes.data() + i, kCodesInUnit);
    word = JoinFields<kBits>(word);
    std::memcpy(packed + at, &word, kWordBytes);
    i += kCodesInUnit;
  }
  for (; i < codes.size(); i += kCodesInUnit, at += kBits) {
    word = 0;
    std::memcpy(&word, codes.data() + i, std::min(kCodesInUnit, codes.size() - i));
    word = JoinFields<kBits>(word);
    std::memcpy(packed + at, &word, kBits);
  }
}

template <int kBits>
void Unpack(const std::byte* packed, std::span<uint8_t> codes) {
  const size_t bytes = PackedBytes(codes.size(), kBits);
  uint64_t word = 0;
  size_t i = 0, at = 0;
  for (; i + kCodesInUnit <= codes.size() && at + kWordBytes <= bytes; at += kBits) {
    std::memcpy(&word, packed + at, kWordBytes);
    word = SpreadFields<kBits>(word);
    std::memcpy(codes.data() + i, &word, kCodesInUnit);
    i += kCodesInUnit;
  }
  for (; i < codes.size(); i += kCodesInUnit, at += kBits) {
    word = 0;
    std::memcpy(&word, packed + at, kBits);
    word = SpreadFields<kBits>(word);
    std::memcpy(codes.data() + i, &word, std::min(kCodesInUnit, codes.size() - i));
  }
}

constexpr std::array kPack = {Pack<1>, Pack<2>, Pack<3>, Pack<4>, Pack<5>, Pack<6>, Pack<7>};
constexpr std::array kUnpack = {Unpack<1>, Unpack<2>, Unpack<3>, Unpack<4>,
                                Unpack<5>, Unpack<6>, Unpack<7>};

}  // namespace

void PackBits(std::span<const uint8_t> codes, int bits, std::byte* packed) {
  if (bits < 8) return kPack[static_cast<size_t>(bits) - 1](codes, packed);
  if (codes.empty()) return;
  std::memcpy(packed, codes.data(), codes.size());
  std::memset(packed + codes.size(), 0, PackedBytes(codes.size(), bits) - codes.size());
}

void UnpackBits(const std::byte* packed, int bits, std::span<uint8_t> codes) {
  if (bits < 8) return kUnpack[static_cast<size_t>(bits) - 1](packed, codes);
  if (!codes.empty()) std::memcpy(codes.data(), packed, codes.size());
}

}  // namespace thinwire::kernels
