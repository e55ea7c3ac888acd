#include "common/codec/table.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/codec/codebook/codebook_encoder.h"
#include "common/codec/codebook/codebook_formats.h"
#include "common/codec/dense/dense.h"
#include "common/codec/low_rank/power_sgd.h"
#include "common/codec/sparse/sparse_encoders.h"
#include "common/codec/transform/dct_top_k.h"

namespace thinwire {
namespace {

using MadeCodec = absl::StatusOr<std::unique_ptr<const Codec>>;

MadeCodec MakeDense(const CodecRow& row, const CodecSpec&) { return MakeDenseCodec(row.id); }

MadeCodec MakeCodebook(const CodecRow& row, const CodecSpec& spec) {
  return MakeCodebookCodec(*row.codebook, row.SettingsOf(spec));
}

// Returns the dense codec with which a sparse codec with the settings SPEC encodes the sent values,
// and powersgd P and Q.
MadeCodec MakeValues(const CodecSpec& spec) {
  const CodecRow& row = RowOf(spec.values);
  return row.make(row, spec);
}

MadeCodec MakeTopK(const CodecRow&, const CodecSpec& spec) {
  ASSIGN_OR_RETURN(auto values, MakeValues(spec));
  return MakeTopKCodec(spec.density, spec.least_sent, spec.indices, std::move(values));
}

MadeCodec MakeRandomK(const CodecRow&, const CodecSpec& spec) {
  ASSIGN_OR_RETURN(auto values, MakeValues(spec));
  return MakeRandomKCodec(spec.density, spec.unbiased, std::move(values));
}

MadeCodec MakePowerSgd(const CodecRow&, const CodecSpec& spec) {
  ASSIGN_OR_RETURN(auto values, MakeValues(spec));
  return MakePowerSgdCodec(spec.powersgd_rank, std::move(values), *RowOf(spec.values).values);
}

MadeCodec MakeDctTopK(const CodecRow&, const CodecSpec& spec) {
  ASSIGN_OR_RETURN(auto values, MakeValues(spec));
  return MakeDctTopKCodec(spec.density, spec.indices, std::move(values),
                          *RowOf(spec.values).values);
}

CodebookSettings OneBitSettingsOf(const CodecSpec& spec) {
  return OneBitSettings(spec.onebit_group);
}
CodebookSettings TwoBitSettingsOf(const CodecSpec& spec) {
  return TwoBitSettings(static_cast<float>(spec.twobit_threshold));
}
CodebookSettings QsgdSettingsOf(const CodecSpec& spec) { return QsgdSettings(spec.qsgd_levels); }

CodecRow Dense(CodecId id, std::string_view name) {
  return {.id = id,
          .name = name,
          .family = CodecFamily::kDense,
          .carries_parameters = true,
          .has_device_encoder = true,
          .values = DenseFormat(id),
          .make = MakeDense};
}

CodecRow Codebook(std::string_view name, const CodebookFormat& format,
                  CodebookSettings (*settings)(const CodecSpec& spec) = nullptr) {
  return {.id = format.id(),
          .name = name,
          .family = CodecFamily::kCodebook,
          .has_device_encoder = format.fit() != CodebookFit::kHostOnly,
          .values = &format,
          .codebook = &format,
          .settings = settings,
          .make = MakeCodebook};
}

CodecRow WithParameters(CodecRow row) {
  row.carries_parameters = true;
  return row;
}

CodecRow Sparse(std::string_view name, const SparseFormat& format, decltype(CodecRow::make) make) {
  return {.id = format.id,
          .name = name,
          .family = CodecFamily::kSparse,
          .has_device_encoder = true,
          .sparse = &format,
          .make = make};
}

// Returns the rows in the order that CodecTable() documents.
std::vector<CodecRow> Rows() {
  return {
      Dense(CodecId::kFp32, "fp32"),
      Dense(CodecId::kFp16, "fp16"),
      Dense(CodecId::kBf16, "bf16"),
      Dense(CodecId::kFp8E5m2, "fp8_e5m2"),
      Dense(CodecId::kFp8E4m3, "fp8_e4m3"),
      WithParameters(Codebook("int8", Int8Format())),
      Codebook("onebit", OneBitFormat(), OneBitSettingsOf),
      Codebook("onebit_sign", OneBitSignFormat(), OneBitSettingsOf),
      Codebook("table_1", TableFormat(1)),
      Codebook("table_2", TableFormat(2)),
      Codebook("table_3", TableFormat(3)),
      Codebook("table_4", TableFormat(4)),
      Codebook("table_5", TableFormat(5)),
      Codebook("table_6", TableFormat(6)),
      Codebook("table_7", TableFormat(7)),
      Codebook("table_8", TableFormat(8)),
      Codebook("lloyd_1", LloydFormat(1)),
      Codebook("lloyd_2", LloydFormat(2)),
      Codebook("lloyd_3", LloydFormat(3)),
      Codebook("lloyd_4", LloydFormat(4)),
      Codebook("lloyd_5", LloydFormat(5)),
      Codebook("lloyd_6", LloydFormat(6)),
      Codebook("lloyd_7", LloydFormat(7)),
      Codebook("lloyd_8", LloydFormat(8)),
      Codebook("twobit", TwoBitFormat(), TwoBitSettingsOf),
      Codebook("qsgd", QsgdFormat(), QsgdSettingsOf),
      Codebook("log_4", Log4Format()),
      Codebook("fp4_e3m0", Fp4E3m0Format()),
      Sparse("topk", kTopKFormat, MakeTopK),
      Sparse("randomk", kRandomKFormat, MakeRandomK),
      {.id = CodecId::kPowerSgd,
       .name = "powersgd",
       .family = CodecFamily::kLowRank,
       .has_device_encoder = true,
       .make = MakePowerSgd},
      {.id = CodecId::kDctTopK,
       .name = "dct_topk",
       .family = CodecFamily::kTransform,
       .sparse = &kDctTopKFormat,
       .make = MakeDctTopK},
  };
}

// The rows of the codec table, with a look-up table by id and the list of names.
struct Table {
  Table() : rows(Rows()) {
    for (const CodecRow& row : rows) {
      by_id[static_cast<uint8_t>(row.id)] = &row;
      names.push_back(row.name);
      delta_count += row.carries_deltas() ? 1 : 0;
      dense_count += row.dense() ? 1 : 0;
      parameter_count += row.carries_parameters ? 1 : 0;
    }
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const std::vector<CodecRow> rows;
  std::array<const CodecRow*, 256> by_id = {};  // the row of each id; null: no such codec
  std::vector<std::string_view> names;
  size_t delta_count = 0;
  size_t dense_count = 0;
  size_t parameter_count = 0;
};

// The codec table is built once and never destroyed, because threads may use it while the process
// exits.
const Table& GetTable() {
  static const Table& table = *new Table();
  return table;
}

const CodecRow* Find(CodecId id) { return GetTable().by_id[static_cast<uint8_t>(id)]; }

}  // namespace

std::span<const CodecRow> CodecTable() { return GetTable().rows; }

const CodecRow& RowOf(CodecId id) { return *Find(id); }

std::span<const std::string_view> CodecNames() { return GetTable().names; }
std::span<const std::string_view> DeltaCodecNames() {
  return CodecNames().first(GetTable().delta_count);
}
std::span<const std::string_view> DenseCodecNames() {
  return CodecNames().first(GetTable().dense_count);
}
std::span<const std::string_view> ParameterCodecNames() {
  return CodecNames().first(GetTable().parameter_count);
}

std::string_view CodecName(CodecId id) {
  const CodecRow* row = Find(id);
  return row == nullptr ? "unknown" : row->name;
}

std::ostream& operator<<(std::ostream& out, CodecId id) { return out << CodecName(id); }

bool IsDense(CodecId id) {
  const CodecRow* row = Find(id);
  return row != nullptr && row->dense();
}

bool IsSparse(CodecId id) {
  const CodecRow* row = Find(id);
  return row != nullptr && row->family == CodecFamily::kSparse;
}

bool HasDensity(CodecId id) {
  const CodecRow* row = Find(id);
  return row != nullptr && row->sparse != nullptr;
}

bool CarriesParameters(CodecId id) {
  const CodecRow* row = Find(id);
  return row != nullptr && row->carries_parameters;
}

absl::StatusOr<CodecSpec> ParseCodec(std::string_view name) {
  for (const CodecRow& row : CodecTable()) {
    if (row.name == name) return CodecSpec{.id = row.id};
  }
  const std::vector<std::string> known(CodecNames().begin(), CodecNames().end());
  return absl::InvalidArgumentError(absl::StrCat("codec: unknown name (expected one of ",
                                                 absl::StrJoin(known, ", "), "; got \"",
                                                 std::string(name), "\")"));
}

absl::StatusOr<IndexCoder> ParseIndexCoder(std::string_view name) {
  if (name == kIndexCoderNames[0]) return IndexCoder::kEliasFano;
  if (name == kIndexCoderNames[1]) return IndexCoder::kGolombRice;
  return absl::InvalidArgumentError(
      absl::StrCat("index coder: unknown name (expected elias_fano or golomb_rice, got \"",
                   std::string(name), "\")"));
}

absl::StatusOr<CodecId> CodecIdFromWire(uint32_t value) {
  if (value <= UINT8_MAX && Find(static_cast<CodecId>(value)) != nullptr) {
    return static_cast<CodecId>(value);
  }
  return absl::InvalidArgumentError(absl::StrCat("codec: unknown number (expected 1 to ",
                                                 CodecTable().size(), ", got ", value, ")"));
}

}  // namespace thinwire
