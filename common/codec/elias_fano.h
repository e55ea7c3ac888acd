// Elias-Fano: k rising indices below n in about 2 + log2(n/k) bits each.
//
//   l = floor(log2(n/k))
//   low part     k * l bits: the low l bits of index i at bit i*l; padded with zeros to whole bytes
//   upper part   k + ((n-1) >> l) + 1 bits: bit (index >> l) + i is set for each i; padded likewise
//
// Bits count from the lowest of the first byte. With k = 0 there are no bytes. Every index is
// placed without looking at the others, so many threads can write a code. (Elias 1974; Fano 1971.)
#ifndef THINWIRE_COMMON_CODEC_ELIAS_FANO_H_
#define THINWIRE_COMMON_CODEC_ELIAS_FANO_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace thinwire {

// For all: REQUIRES count <= universe < 2^32.

size_t EliasFanoBytes(size_t count, size_t universe);

// Writes EliasFanoBytes bytes to OUT. REQUIRES: INDICES rise and are below UNIVERSE.
void EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out);

// Reads indices in their order. Whatever the bytes are, it reads nothing beyond them, but only of a
// code that CheckEliasFano passed does it give what was encoded. Not thread-safe.
class EliasFanoReader {
 public:
  // REQUIRES: code.size() == EliasFanoBytes(count, universe).
  EliasFanoReader(std::span<const std::byte> code, size_t count, size_t universe);

  // Fills OUT with the next indices; returns how many there were, fewer than asked for only at the
  // end of the bits.
  size_t Next(std::span<uint32_t> out);

  // Whether a set bit of the upper part has not been read.
  bool MoreBits();

 private:
  bool FindBit();  // makes word_ not 0

  const int low_bits_;
  const std::span<const std::byte> low_;
  const std::span<const std::byte> upper_;
  size_t upper_byte_ = 0;  // of word_
  uint64_t word_ = 0;      // the bits of the upper part that have not been read, from upper_byte_
  size_t next_ = 0;        // the number of the next index
};

// Whether CODE is what EncodeEliasFano writes for some COUNT indices below UNIVERSE. Errors:
// InvalidArgument.
absl::Status CheckEliasFano(std::span<const std::byte> code, size_t count, size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_ELIAS_FANO_H_
