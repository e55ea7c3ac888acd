// Codebook: what the codes of a dense payload stand for, of the codecs that send a few bits for
// each value and, for each group of values, the numbers that a table is made from.
//
//   body = head | the numbers of each group, as fp32 | codes (kernels/pack_bits.h)
//
//   codec             head          numbers          bits           value of code c, sign taken off
//   int8              zero (1)      s                8              s (c - zero)
//   onebit            group (4)     p, m             1              p or m
//   onebit_sign       group (4)     a                1              a
//   table_N lloyd_N   -             2^(N-1) of them  N              number c
//   twobit            -             t                2              0 or t
//   qsgd              levels (1)    a                1 + levels'    a min(c, levels) / levels
//   log_4             a (2) b (1)   -                4              a r^(7-c), r = 1 - b/256
//
// The top bit of a code is its sign, but in int8. A group is the whole shard, in qsgd 512 values,
// and in onebit as many as its head says, 0 being all. `a` of log_4 is the upper half of a float.
// A value type.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/codec/codec_names.h"

namespace thinwire {

class Codebook {
 public:
  static constexpr size_t kMostHeadBytes = 4;
  static constexpr size_t kMostNumbers = 128;
  using Head = std::array<std::byte, kMostHeadBytes>;

  static bool IsOf(CodecId id);  // whether the codec has one
  // REQUIRES, for both: IsOf(id). The bytes of the head beyond its length count for nothing.
  static size_t HeadBytes(CodecId id);
  // A head with what is chosen of the codec: the group of one bit, the levels of qsgd, at most 255;
  // of others zeros.
  static Head HeadOf(CodecId id, uint32_t setting);
  // Errors: InvalidArgument for a head that is none.
  static absl::StatusOr<Codebook> Read(CodecId id, const Head& head);

  size_t head_bytes() const { return HeadBytes(id_); }
  int bits() const { return bits_; }
  size_t table_size() const { return size_t{1} << bits_; }
  size_t number_count() const { return number_count_; }  // of a group
  // The values that share a table. REQUIRES: the shard has COUNT values, as below.
  size_t group(size_t count) const { return group_ == 0 ? count : group_; }
  size_t group_count(size_t count) const;
  size_t NumbersOffset(size_t group_number) const;  // in the body
  size_t CodesOffset(size_t count) const;
  size_t BodyBytes(size_t count) const;

  // Fills the first table_size() of TABLE with scale * the value of each code. REQUIRES:
  // numbers.size() == number_count().
  void FillTable(std::span<const float> numbers, float scale, std::span<float> table) const;

 private:
  Codebook(CodecId id, const Head& head);

  float Magnitude(std::span<const float> numbers, size_t code) const;
  float Log4Magnitude(size_t code) const;

  CodecId id_;
  Head head_;
  int bits_ = 0;
  size_t group_ = 0;
  size_t number_count_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_H_
