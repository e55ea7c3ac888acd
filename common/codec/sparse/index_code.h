// Two encodings of k ascending indices below n. Each index is converted to a number. The l low bits
// of the numbers are stored as they are, the upper bits in unary.
//
//   low part     bits i l to i l + l - 1 are the low l bits of number i
//   upper part   bit (upper of number i) + i is set for each i
//
//   coder         number i             upper of number i              l
//   elias_fano    index i              number >> l                    floor(log2(n/k))
//   golomb_rice   gap before index i   the sum of gap >> l up to i    the least l with
//                                                                     2^l >= .481 n/k
//
// Zeros fill the last byte of each part.
// A gap is the number of skipped indices. The upper part of elias_fano has k + ((n-1) >> l) + 1
// bits; the upper part of golomb_rice ends with its last set bit. Bit 0 is the lowest bit of the
// first byte. With k = 0 the code is empty. At k/n = .001, an index takes 11.95 bits in elias_fano
// and 11.49 bits in golomb_rice; its entropy is 11.41 bits. (Elias 1974, Fano 1971; Golomb 1966,
// Rice 1979.)
#ifndef THINWIRE_COMMON_CODEC_SPARSE_INDEX_CODE_H_
#define THINWIRE_COMMON_CODEC_SPARSE_INDEX_CODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/codec/family/codec_id.h"

namespace thinwire {

// All functions REQUIRE count <= universe < 2^32, where COUNT is the number of indices and UNIVERSE
// is larger than each index.

// Returns the largest possible length in bytes of a code of COUNT indices. Every elias_fano code
// has this length.
size_t MaxIndexBytes(IndexCoder coder, size_t count, size_t universe);

// Writes the code of INDICES, at most MaxIndexBytes bytes, to OUT and returns its length. REQUIRES:
// INDICES is ascending and its elements are below UNIVERSE.
size_t EncodeIndices(IndexCoder coder, std::span<const uint32_t> indices, size_t universe,
                     std::byte* out);

// Reads the indices of a code in ascending order, and never beyond the bytes of the code. The
// indices are meaningful only if CheckIndices accepted the code. Not thread-safe.
class IndexReader {
 public:
  // Reads COUNT indices below UNIVERSE from CODE. REQUIRES: CODE contains the complete low part.
  IndexReader(IndexCoder coder, std::span<const std::byte> code, size_t count, size_t universe);

  // Fills OUT with the next indices and returns their number, which is less than out.size() only if
  // the code ends.
  size_t Next(std::span<uint32_t> out);

  // Returns whether the upper part of the code has a set bit that has not been read.
  bool MoreBits();
  // Returns whether the last set bit that was read lies in the last byte of the code.
  bool AtLastByte() const { return (after_last_ + 7) / 8 == upper_.size(); }

 private:
  // low_at(bit) returns the bits of the code from position BIT on, the first one as the lowest bit.
  template <IndexCoder kCoder, typename LowAt>
  size_t NextOf(std::span<uint32_t> out, const LowAt& low_at);
  // If all bits of word_ are 0, advances word_ to the next 64 bits of the code's upper part that
  // contain a set bit. Returns false at the end of the code.
  bool FindBit();

  const IndexCoder coder_;
  const int low_bits_;
  const std::span<const std::byte> code_;
  const std::span<const std::byte> upper_;
  size_t upper_byte_ = 0;  // the byte offset of word_ in upper_
  uint64_t word_ = 0;      // the unread bits among the 64 bits of upper_ from upper_byte_ on
  size_t next_ = 0;        // the number of indices read
  uint64_t least_ = 0;     // the smallest possible next index: the last index + 1
  size_t after_last_ = 0;  // the position in upper_ after the last set bit that was read
};

// Returns OK if CODE is the result of EncodeIndices for some COUNT indices below UNIVERSE,
// otherwise InvalidArgument.
absl::Status CheckIndices(IndexCoder coder, std::span<const std::byte> code, size_t count,
                          size_t universe);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_INDEX_CODE_H_
