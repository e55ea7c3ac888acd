#include "server/durable/log_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/crc32c.h"

namespace thinwire {
namespace {

// All numbers in a log are little-endian, as are all supported machines.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kNamePrefix = "log-";
constexpr size_t kNameDigits = 20;
constexpr std::string_view kMagic = "thinwlog";
constexpr uint32_t kFormatVersion = 1;

// The positions of the fields in the header of a segment.
constexpr size_t kFirstAt = 8;
constexpr size_t kVersionAt = 16;
constexpr size_t kSegmentCrcAt = 20;
// The positions of the fields in the header of a record.
constexpr size_t kLengthAt = 0;
constexpr size_t kChecksumAt = 4;
constexpr size_t kSequenceAt = 8;
constexpr size_t kCommitAt = 16;
constexpr size_t kRecordCrcAt = 24;

template <typename T>
T Load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <typename T>
void Store(T value, std::span<std::byte> bytes, size_t at) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

}  // namespace

std::string SegmentName(LogSequence first) {
  return absl::StrFormat("%s%0*d", kNamePrefix, kNameDigits, first);
}

std::optional<LogSequence> ParseSegmentName(std::string_view name) {
  if (name.size() != kNamePrefix.size() + kNameDigits || !name.starts_with(kNamePrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kNamePrefix.size());
  LogSequence first = 0;
  const bool digits = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !absl::SimpleAtoi({name.data(), name.size()}, &first)) return std::nullopt;
  return first;
}

std::array<std::byte, kSegmentHeaderBytes> SegmentHeader(LogSequence first) {
  std::array<std::byte, kSegmentHeaderBytes> header;
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  Store(first, header, kFirstAt);
  Store(kFormatVersion, header, kVersionAt);
  Store(Crc32c(std::span(header).first(kSegmentCrcAt)), header, kSegmentCrcAt);
  return header;
}

absl::Status CheckSegmentHeader(std::span<const std::byte> bytes, LogSequence first) {
  if (bytes.size() < kSegmentHeaderBytes) {
    return absl::DataLossError(absl::StrCat("segment header: too short (expected ",
                                            kSegmentHeaderBytes, " bytes, got ", bytes.size(),
                                            ")"));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return absl::DataLossError("segment header: not a log of thinwire");
  }
  if (Load<uint32_t>(bytes, kSegmentCrcAt) != Crc32c(bytes.first(kSegmentCrcAt))) {
    return absl::DataLossError("segment header: wrong checksum");
  }
  if (const auto version = Load<uint32_t>(bytes, kVersionAt); version != kFormatVersion) {
    return absl::DataLossError(absl::StrCat("segment header: unknown format version (expected ",
                                            kFormatVersion, ", got ", version, ")"));
  }
  if (const auto got = Load<LogSequence>(bytes, kFirstAt); got != first) {
    return absl::DataLossError(
        absl::StrCat("segment header: differs from the name of the file (expected record ", first,
                     ", got ", got, ")"));
  }
  return absl::OkStatus();
}

void WriteRecordHeader(const RecordHeader& header, std::span<std::byte, kRecordHeaderBytes> to) {
  Store(header.length, to, kLengthAt);
  Store(header.checksum, to, kChecksumAt);
  Store(header.sequence, to, kSequenceAt);
  Store(header.commit, to, kCommitAt);
  Store(Crc32c(to.first(kRecordCrcAt)), to, kRecordCrcAt);
}

std::optional<RecordHeader> ParseRecordHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const RecordHeader header = {.length = Load<uint32_t>(bytes, kLengthAt),
                               .checksum = Load<uint32_t>(bytes, kChecksumAt),
                               .sequence = Load<LogSequence>(bytes, kSequenceAt),
                               .commit = Load<LogSequence>(bytes, kCommitAt)};
  // The last comparison is the slow one. HasLaterCommit relies on the first.
  if (header.commit == 0 || header.commit > header.sequence ||
      Load<uint32_t>(bytes, kRecordCrcAt) != Crc32c(bytes.first(kRecordCrcAt))) {
    return std::nullopt;
  }
  return header;
}

bool HasLaterCommit(std::span<const std::byte> bytes, LogSequence sequence) {
  // A segment with BYTES has fewer records than bytes. This excludes nearly all positions without a
  // checksum.
  const LogSequence largest = sequence + bytes.size();
  for (; bytes.size() >= kRecordHeaderBytes; bytes = bytes.subspan(1)) {
    const auto commit = Load<LogSequence>(bytes, kCommitAt);
    if (commit > sequence && commit <= largest && ParseRecordHeader(bytes).has_value()) {
      return true;
    }
  }
  return false;
}

uint32_t Checksum(const ByteChain& bytes) {
  uint32_t crc = 0;
  for (const ByteChain::Piece& piece : bytes.pieces()) crc = Crc32c(piece.bytes, crc);
  return crc;
}

}  // namespace thinwire
