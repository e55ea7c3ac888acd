// The codebook family: codecs that send a code of a few bits for each value, and a table that maps
// codes to values.
//
//   body = head | the numbers of each group, fp32 | packed codes (kernels/pack_bits.h)
//
// All values of a group share one table, which is computed from the head and from the group's
// numbers: a few fp32 parameters, such as a mean, that the encoder fits to the values. A
// CodebookFormat describes one codec: its head, the width of its codes, its groups, its table and
// the fit. Each codec has its own source file in this folder; codebook_formats.h lists the codecs.
// This header contains the functions that all of these codecs share, and the decoder.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/codec/family/encoder.h"
#include "common/codec/family/value_format.h"

namespace thinwire {

// The head of a codebook codec's body: its first bytes, at most kMaxHeadBytes. If the codec has a
// shorter head, the unused bytes of the array are zero.
inline constexpr size_t kMaxHeadBytes = 4;
using CodebookHead = std::array<std::byte, kMaxHeadBytes>;

// The maximum count of a group's numbers, which are fp32 parameters of the group's table.
inline constexpr size_t kMaxCodebookNumbers = 128;

// The sizes that determine the layout of a codebook codec's body. A value type.
struct CodebookShape {
  size_t head_bytes = 0;
  int bits = 0;             // bits per code, 1 to 8
  size_t group = 0;         // values that share a table, a multiple of 8; 0: the whole shard
  size_t number_count = 1;  // numbers per group

  size_t table_size() const { return size_t{1} << bits; }
  // In the functions below, COUNT is the number of values of the shard. Offsets are in bytes from
  // the start of the body.
  size_t GroupSize(size_t count) const { return group == 0 ? count : group; }
  size_t GroupCount(size_t count) const;
  size_t NumbersOffset(size_t group_index) const;
  size_t CodesOffset(size_t count) const;
  size_t BodyBytes(size_t count) const;

  bool operator==(const CodebookShape&) const = default;
};

// The method that chooses the parameters of a group's codebook, such as a mean or a step size, from
// the group's values. The GPU encoder (client/gpu/codebook_encode.h) has one routine for each
// method except kHostOnly. A codec with kHostOnly cannot be used on a GPU.
enum class CodebookFit {
  kHostOnly,
  kMeansBySign,    // the mean of the positive values and the mean of the negative values
  kMeanMagnitude,  // the mean magnitude
  kEvenSteps,      // the step size and the zero point of an affine code
  kPercentiles,    // percentiles of the magnitudes of a sample
  kLloyd,          // kPercentiles, refined by Lloyd's algorithm
  kFixed,          // the only number, which is a setting in the codec spec
  kRatios,         // a geometric sequence from the smallest to the largest magnitude
  kRandomLevels,   // the largest magnitude; codes are rounded at random
  kPowersOfTwo,    // the largest magnitude, divided by powers of two
};

// Returns true if the only number of a group is its largest magnitude.
constexpr bool FitsLargestMagnitude(CodebookFit fit) {
  return fit == CodebookFit::kRandomLevels || fit == CodebookFit::kPowersOfTwo;
}

// The parts of a codebook that the codec spec determines.
struct CodebookSettings {
  CodebookHead head = {};  // the head of every payload, except bytes that Fit computes
  float number = 0;        // kFixed only: the magnitude that the table is computed from
};

// The table of one group, with the head and the numbers that it was computed from.
struct FittedTable {
  const CodebookHead& head;
  std::span<const float> numbers;
  std::span<const float> table;
};

// Describes one codebook codec: its layout, its table and its fit. Immutable. Thread-safe.
class CodebookFormat : public ValueFormat {
 public:
  constexpr CodebookFormat(CodecId id, CodebookFit fit, const CodebookShape& shape)
      : id_(id), fit_(fit), shape_(shape) {}

  CodecId id() const { return id_; }
  CodebookFit fit() const { return fit_; }
  size_t head_bytes() const { return shape_.head_bytes; }

  // Returns the layout of bodies that begin with HEAD. Errors: InvalidArgument if HEAD is
  // malformed.
  virtual absl::StatusOr<CodebookShape> Shape(const CodebookHead& /*head*/) const { return shape_; }
  // Sets each entry of TABLE to SCALE times the value that the entry's code stands for. By default,
  // the top bit of a code is the sign, and the lower bits are the index of the magnitude in
  // NUMBERS. REQUIRES: Shape(head) succeeded, and NUMBERS and TABLE have the sizes of that shape.
  virtual void FillTable(const CodebookHead& head, std::span<const float> numbers, float scale,
                         std::span<float> table) const;

  // Fits the codec to VALUES, which form one group: fills NUMBERS and the bytes of HEAD that depend
  // on the values. A kFixed codec does not change NUMBERS, which the caller has filled from the
  // settings.
  virtual void Fit(std::span<const float> values, CodebookHead& head,
                   std::span<float> numbers) const = 0;
  // Adds GRADIENT to VALUES, then fits the codec to the sums like Fit. The default implementation
  // makes two passes over the values; some codecs make one.
  virtual void AddAndFit(std::span<const float> gradient, std::span<float> values,
                         CodebookHead& head, std::span<float> numbers) const;
  // Sets CODES to the codes of VALUES. FIRST is the index of the first value in the shard, a
  // multiple of 8. The default implementation chooses the code with the nearest magnitude in the
  // table. REQUIRES: VALUES has at most kMaxCodesAtOnce elements.
  virtual void Code(std::span<const float> values, size_t first, const RandomKeys& keys,
                    const FittedTable& fitted, std::span<uint8_t> codes) const;
  static constexpr size_t kMaxCodesAtOnce = 2048;  // so that a block stays in the first-level cache

  // The functions of the decoder; common/codec/family/value_format.h describes them.
  absl::StatusOr<size_t> BodyBytes(const ValueBody& body) const final;
  absl::Status Check(const ValueBody& body) const final;
  bool IsWithin(const ValueBody& body, float limit) const final;
  void Decode(const ValueBody& body, size_t first, float scale, std::span<float> out) const final;
  void DecodeAdd(const ValueBody& body, float scale, std::span<float> sum) const final;

  // Returns the head of BODY. Errors: InvalidArgument if the body is too short.
  absl::StatusOr<CodebookHead> ReadHead(const ValueBody& body) const;
  // Sets each entry of TABLE to SCALE times the value of its code in group GROUP_INDEX of BODY.
  // HEAD and SHAPE describe the layout of BODY. REQUIRES: Check(body) succeeded.
  void ReadTable(const ValueBody& body, const CodebookHead& head, const CodebookShape& shape,
                 size_t group_index, float scale, std::span<float> table) const;

 protected:
  ~CodebookFormat() = default;

  const CodebookShape& fixed_shape() const { return shape_; }

 private:
  template <typename Use>
  void ForEachCodes(const ValueBody& body, size_t first, size_t count, float scale,
                    const Use& use) const;

  const CodecId id_;
  const CodebookFit fit_;
  const CodebookShape shape_;  // the layout; 0 in each field that depends on the head
};

// Fills TABLE for codes whose top bit is the sign. The magnitude of a code with the lower bits c is
// SCALE times magnitude(c).
template <typename Magnitude>
void FillSignedTable(const Magnitude& magnitude, float scale, std::span<float> table) {
  const size_t half = table.size() / 2;
  for (size_t c = 0; c < half; ++c) {
    table[c] = scale * magnitude(c);
    table[half + c] = -table[c];
  }
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_CODEBOOK_H_
