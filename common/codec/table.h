// The codec table: one row per codec with all properties that other code uses. A new codec requires
// a row here, a source file, an id (family/codec_id.h) and an enum value in proto/job.proto.
// docs/codecs.md describes the payloads.
//
//   codecs                                      may encode
//   powersgd dct_topk                           gradients
//   topk randomk                                gradients, deltas
//   onebit onebit_sign table_1 .. table_8       gradients, deltas, values of a sparse payload
//     lloyd_1 .. lloyd_8 twobit qsgd log_4 fp4_e3m0
//   fp32 fp16 bf16 fp8_e5m2 fp8_e4m3 int8       gradients, deltas, values of a sparse payload,
//                                               whole parameters
//
// Constants: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_TABLE_H_
#define THINWIRE_COMMON_CODEC_TABLE_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/codec/codebook/codebook.h"
#include "common/codec/family/codec_id.h"
#include "common/codec/family/encoder.h"
#include "common/codec/family/value_format.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/codec/spec.h"

namespace thinwire {

// The family of a codec, which is also the subfolder of common/codec that implements it.
enum class CodecFamily { kDense, kCodebook, kSparse, kLowRank, kTransform };

struct CodecRow {
  CodecId id = CodecId::kFp32;
  std::string_view name;  // the name in job files and reports
  CodecFamily family = CodecFamily::kDense;
  // True if servers may send whole parameters with this codec. Every codec may encode gradients,
  // every dense() or sparse codec deltas, and every dense() codec the values of a payload of
  // another family.
  bool carries_parameters = false;
  // True if a GPU can encode with this codec (client/gpu/device_codec.h).
  bool has_device_encoder = false;

  // The payload format: its head, size, check and decoder. Exactly one of `values` and `sparse` is
  // set, except for the low-rank family, whose only format is LowRankLayout.
  const ValueFormat* values = nullptr;       // set for the dense and the codebook family
  const CodebookFormat* codebook = nullptr;  // codebook family: the same object as `values`
  const SparseFormat* sparse = nullptr;      // set for the sparse and the transform family
  // Codebook family only: a function that returns the codec's settings from the fields of SPEC.
  // Null if the codec has no settings.
  CodebookSettings (*settings)(const CodecSpec& spec) = nullptr;
  // Makes the encoder. REQUIRES: spec.Validate() found no problem.
  absl::StatusOr<std::unique_ptr<const Codec>> (*make)(const CodecRow& row,
                                                       const CodecSpec& spec) = nullptr;

  // Returns true if a payload contains a value for every index.
  bool dense() const { return values != nullptr; }
  // Returns true if servers may send deltas with this codec.
  bool carries_deltas() const { return dense() || family == CodecFamily::kSparse; }
  // Returns the codebook settings that SPEC gives this codec, or default settings if the codec has
  // no settings.
  CodebookSettings SettingsOf(const CodecSpec& spec) const {
    return settings == nullptr ? CodebookSettings() : settings(spec);
  }
};

// Returns all rows: first the codecs that carry parameters, then the other dense codecs, then the
// sparse codecs, then those that carry only gradients.
std::span<const CodecRow> CodecTable();

// Returns the row of ID. REQUIRES: ID is in the table. CodecIdFromWire returns only such ids.
const CodecRow& RowOf(CodecId id);

// Return codec names in the order of the table: the names of all codecs, of the codecs that may
// carry deltas, of the dense codecs, and of the codecs that may carry whole parameters. Each list
// is a prefix of the previous list.
std::span<const std::string_view> CodecNames();
std::span<const std::string_view> DeltaCodecNames();
std::span<const std::string_view> DenseCodecNames();
std::span<const std::string_view> ParameterCodecNames();

// Returns the name of a codec, such as "fp8_e5m2", or "unknown" for an id that is not in the table.
std::string_view CodecName(CodecId id);
std::ostream& operator<<(std::ostream& out, CodecId id);

// Return whether the codec is dense(), whether it belongs to the sparse family, whether it reads
// CodecSpec::density, and its carries_parameters property; false for an id that is not in the
// table.
bool IsDense(CodecId id);
bool IsSparse(CodecId id);
bool HasDensity(CodecId id);
bool CarriesParameters(CodecId id);

// Returns the codec called NAME with default settings. Errors: InvalidArgument that lists the
// names.
absl::StatusOr<CodecSpec> ParseCodec(std::string_view name);

// Parses "elias_fano" or "golomb_rice". Errors: InvalidArgument.
absl::StatusOr<IndexCoder> ParseIndexCoder(std::string_view name);
inline constexpr std::string_view kIndexCoderNames[] = {"elias_fano", "golomb_rice"};

// Converts a number from a message to a codec id. Errors: InvalidArgument if no codec has this id.
absl::StatusOr<CodecId> CodecIdFromWire(uint32_t value);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TABLE_H_
