// The format of the segments of an event log. docs/event_log.md describes every byte.
#ifndef THINWIRE_SERVER_DURABLE_LOG_FORMAT_H_
#define THINWIRE_SERVER_DURABLE_LOG_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/memory/byte_chain.h"
#include "server/durable/event_log.h"

namespace thinwire {

inline constexpr size_t kSegmentHeaderBytes = 24;
inline constexpr size_t kRecordHeaderBytes = 28;

// Returns the name of the segment whose first record is FIRST: "log-" and 20 digits.
std::string SegmentName(LogSequence first);
// Returns the first record of the segment called NAME, or nullopt if NAME is no name of a segment.
std::optional<LogSequence> ParseSegmentName(std::string_view name);

std::array<std::byte, kSegmentHeaderBytes> SegmentHeader(LogSequence first);
// Checks that BYTES, the bytes of a segment, begin with the header of the segment whose first
// record is FIRST. Errors: DataLoss with the cause.
absl::Status CheckSegmentHeader(std::span<const std::byte> bytes, LogSequence first);

struct RecordHeader {
  uint32_t length = 0;       // of the record, without this header
  uint32_t checksum = 0;     // CRC-32C of the record
  LogSequence sequence = 0;  // of the record
  LogSequence commit = 0;    // the first record that was flushed together with this one

  bool operator==(const RecordHeader&) const = default;
};

// Writes HEADER and its checksum to TO.
void WriteRecordHeader(const RecordHeader& header, std::span<std::byte, kRecordHeaderBytes> to);
// Returns the header at the beginning of BYTES. Returns nullopt if BYTES are too short, if the
// checksum of the header is wrong, or if no log contains such a header.
std::optional<RecordHeader> ParseRecordHeader(std::span<const std::byte> bytes);
// Returns whether BYTES contain, at any position, the header of a record whose commit began after
// the record SEQUENCE. If so, the record SEQUENCE has been flushed.
bool HasLaterCommit(std::span<const std::byte> bytes, LogSequence sequence);

// Returns the CRC-32C of BYTES.
uint32_t Checksum(const ByteChain& bytes);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_LOG_FORMAT_H_
