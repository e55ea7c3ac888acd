#include "common/codec/codec_names.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

constexpr CodecId Numbered(CodecId first, int number) {
  return static_cast<CodecId>(static_cast<int>(first) + number - 1);
}
constexpr CodecId Table(int bits) { return Numbered(CodecId::kTable1, bits); }
constexpr CodecId Lloyd(int bits) { return Numbered(CodecId::kLloyd1, bits); }

// The codecs that may carry parameters first, then the other dense ones, then the sparse ones.
constexpr CodecId kIds[] = {
    CodecId::kFp32,    CodecId::kFp16, CodecId::kBf16,   CodecId::kFp8E5m2,
    CodecId::kFp8E4m3, CodecId::kInt8, CodecId::kOneBit, CodecId::kOneBitSign,
    Table(1),          Table(2),       Table(3),         Table(4),
    Table(5),          Table(6),       Table(7),         Table(8),
    Lloyd(1),          Lloyd(2),       Lloyd(3),         Lloyd(4),
    Lloyd(5),          Lloyd(6),       Lloyd(7),         Lloyd(8),
    CodecId::kTwoBit,  CodecId::kQsgd, CodecId::kLog4,   CodecId::kTopK,
    CodecId::kRandomK};
constexpr std::string_view kNames[] = {
    "fp32",    "fp16",    "bf16",    "fp8_e5m2", "fp8_e4m3", "int8",    "onebit",  "onebit_sign",
    "table_1", "table_2", "table_3", "table_4",  "table_5",  "table_6", "table_7", "table_8",
    "lloyd_1", "lloyd_2", "lloyd_3", "lloyd_4",  "lloyd_5",  "lloyd_6", "lloyd_7", "lloyd_8",
    "twobit",  "qsgd",    "log_4",   "topk",     "randomk"};
constexpr size_t kParameterCount = 6;
constexpr size_t kDenseCount = 27;
static_assert(std::size(kIds) == std::size(kNames));

size_t PlaceOf(CodecId id) {
  return static_cast<size_t>(std::ranges::find(kIds, id) - std::begin(kIds));
}

}  // namespace

std::span<const std::string_view> CodecNames() { return kNames; }
std::span<const std::string_view> DenseCodecNames() { return CodecNames().first(kDenseCount); }
std::span<const std::string_view> ParameterCodecNames() {
  return CodecNames().first(kParameterCount);
}

std::string_view CodecName(CodecId id) {
  const size_t place = PlaceOf(id);
  return place < std::size(kNames) ? kNames[place] : "unknown";
}

std::ostream& operator<<(std::ostream& out, CodecId id) { return out << CodecName(id); }

bool IsDense(CodecId id) { return PlaceOf(id) < kDenseCount; }
bool CarriesParameters(CodecId id) { return PlaceOf(id) < kParameterCount; }

absl::StatusOr<CodecSpec> ParseCodec(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return CodecSpec{.id = kIds[i]};
  }
  const std::vector<std::string> known(std::begin(kNames), std::end(kNames));
  return absl::InvalidArgumentError(absl::StrCat("codec: want one of ", absl::StrJoin(known, ", "),
                                                 "; got \"", std::string(name), "\""));
}

absl::StatusOr<IndexCoder> ParseIndexCoder(std::string_view name) {
  if (name == kIndexCoderNames[0]) return IndexCoder::kEliasFano;
  if (name == kIndexCoderNames[1]) return IndexCoder::kGolombRice;
  return absl::InvalidArgumentError(absl::StrCat(
      "indices: want one of elias_fano, golomb_rice; got \"", std::string(name), "\""));
}

absl::StatusOr<CodecId> CodecIdFromWire(uint32_t value) {
  if (value >= 1 && value <= std::size(kIds)) return static_cast<CodecId>(value);
  return absl::InvalidArgumentError(absl::StrCat("codec ", value, ": want 1 to ", std::size(kIds)));
}

}  // namespace thinwire
