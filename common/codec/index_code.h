// A code of k rising indices below n: some low bits of each, and the rest in unary.
//
//   low part     k * l bits: the low l bits of number i at bit i * l; padded with zeros to whole
//   bytes upper part   bit (upper of number i) + i is set for each i; padded likewise
//
//   coder         number i             upper of number i                l
//   elias_fano    index i              number >> l                      floor(log2(n/k))
//   golomb_rice   gap before index i   the sum of gap >> l up to here   the least with 2^l >= .481
//   n/k
//
// A gap counts the indices that were skipped. The upper part of elias_fano has k + ((n-1) >> l) + 1
// bits; that of golomb_rice ends with its last set bit. Bits count from the lowest of the first
// byte. With k = 0 there are no bytes. At k/n = .001 an index takes 11.95 and 11.49 bits, its
// entropy being 11.41. (Elias 1974, Fano 1971; Golomb 1966, Rice 1979.)
#ifndef THINWIRE_COMMON_CODEC_INDEX_CODE_H_
#define THINWIRE_COMMON_CODEC_INDEX_CODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/codec/codec_names.h"

namespace thinwire {

// For all: REQUIRES count <= universe < 2^32.

// The most bytes of a code; with elias_fano all have as many.
size_t MaxIndexBytes(IndexCoder coder, size_t count, size_t universe);

// Writes at most MaxIndexBytes bytes to OUT and returns how many. REQUIRES: INDICES rise and are
// below UNIVERSE.
size_t EncodeIndices(IndexCoder coder, std::span<const uint32_t> indices, size_t universe,
                     std::byte* out);

// Reads indices in their order. Whatever the bytes are, it reads nothing beyond them, but only of a
// code that CheckIndices passed does it give what was encoded. Not thread-safe.
class IndexReader {
 public:
  // REQUIRES: CODE has the bytes of the low part.
  IndexReader(IndexCoder coder, std::span<const std::byte> code, size_t count, size_t universe);

  // Fills OUT with the next indices; returns how many there were, fewer than asked for only at the
  // end of the bits.
  size_t Next(std::span<uint32_t> out);

  // Whether a set bit of the upper part has not been read.
  bool MoreBits();
  // Whether the last bit that was read lies in the last byte.
  bool AtLastByte() const { return (after_last_ + 7) / 8 == upper_.size(); }

 private:
  // LOW_AT gives the low bits from a bit of the code on, with others behind them.
  template <IndexCoder kCoder, typename LowAt>
  size_t NextOf(std::span<uint32_t> out, const LowAt& low_at);
  bool FindBit();  // makes word_ not 0

  const IndexCoder coder_;
  const int low_bits_;
  const std::span<const std::byte> code_;
  const std::span<const std::byte> upper_;
  size_t upper_byte_ = 0;  // of word_
  uint64_t word_ = 0;      // the bits of the upper part that have not been read, from upper_byte_
  size_t next_ = 0;        // the number of the next index
  uint64_t least_ = 0;     // that the next index can be: the last + 1
  size_t after_last_ = 0;  // where the bits of the upper part begin that have not been read
};

// Whether CODE is what EncodeIndices writes for some COUNT indices below UNIVERSE. Errors:
// InvalidArgument.
absl::Status CheckIndices(IndexCoder coder, std::span<const std::byte> code, size_t count,
                          size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_INDEX_CODE_H_
