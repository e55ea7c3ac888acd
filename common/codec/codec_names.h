// The codecs by number and by name, and what one is made from. A codec's name is its number's: the
// wire has the number, a configuration the name.
//
//   parameters   fp32 fp16 bf16 fp8_e5m2 fp8_e4m3 int8    may carry whole parameters too
//   dense        onebit onebit_sign table_1 .. table_8 lloyd_1 .. lloyd_8 twobit qsgd log_4
//   sparse       topk randomk                             some values, and where they are
//
// Everything here is a value or a constant: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEC_NAMES_H_
#define THINWIRE_COMMON_CODEC_CODEC_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace thinwire {

// The first byte of a payload, and the read_codec of the wire. Numbers are never used again for
// something else.
enum class CodecId : uint8_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kFp8E5m2 = 4,
  kFp8E4m3 = 5,
  kTopK = 6,
  kInt8 = 7,
  kOneBit = 8,
  kOneBitSign = 9,
  kTwoBit = 10,
  kRandomK = 11,
  kQsgd = 12,
  kLog4 = 13,
  kTable1 = 14,  // and so on: kTable1 + N - 1 is table_N
  kTable8 = 21,
  kLloyd1 = 22,
  kLloyd8 = 29,
};

// How a topk payload says which values it has (index_code.h).
enum class IndexCoder : uint8_t { kEliasFano = 0, kGolombRice = 1 };

// What a codec is made from; each setting as in config.proto.
struct CodecSpec {
  CodecId id = CodecId::kFp32;
  double density = 0.01;            // topk, randomk: the part of the values that is sent, in (0, 1]
  uint32_t least_sent = 1;          // topk: however low the density; at least 1
  CodecId values = CodecId::kFp32;  // topk, randomk: a dense codec
  IndexCoder indices = IndexCoder::kEliasFano;  // topk
  // randomk: sends values n/k times as large, so that the mean is right without error feedback.
  bool unbiased = false;
  double twobit_threshold = 0.5;
  uint32_t qsgd_levels = 7;   // 1 to 127
  uint32_t onebit_group = 0;  // onebit, onebit_sign: values that share scales, in eights; 0: all

  bool operator==(const CodecSpec&) const = default;
};

// All names; those of the dense codecs, a value for every index; of those, the ones that whole
// parameters may be sent in. Each list begins with the next.
std::span<const std::string_view> CodecNames();
std::span<const std::string_view> DenseCodecNames();
std::span<const std::string_view> ParameterCodecNames();

std::string_view CodecName(CodecId id);  // "fp8_e5m2"
std::ostream& operator<<(std::ostream& out, CodecId id);

bool IsDense(CodecId id);
bool CarriesParameters(CodecId id);

// The codec called NAME, its settings at their defaults. Errors: InvalidArgument that names the
// codecs there are.
absl::StatusOr<CodecSpec> ParseCodec(std::string_view name);

// "elias_fano" or "golomb_rice". Errors: InvalidArgument.
absl::StatusOr<IndexCoder> ParseIndexCoder(std::string_view name);
inline constexpr std::string_view kIndexCoderNames[] = {"elias_fano", "golomb_rice"};

// The id that a byte of the wire stands for. Errors: InvalidArgument "codec 77: want 1 to 29".
absl::StatusOr<CodecId> CodecIdFromWire(uint32_t value);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_NAMES_H_
