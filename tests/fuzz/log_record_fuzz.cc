// A libFuzzer target for DecodeRecord (server/durable/log_record.h). A decoded record survives a
// round trip; all other bytes are DataLoss.
//
//   input = kind | bytes per piece - 1 | n | bytes
//
//   kind % 4 = 0    the bytes are the record
//              1    the first n bytes are the head, the other bytes are the payload
//              2    the bytes are the payload of a push to shard n % 3
//              3    the bytes are the payload of a seed of shard n % 3
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/state.pb.h"
#include "server/durable/log_record.h"

namespace thinwire {
namespace {

std::optional<size_t> ValueCount(ShardId shard) {
  if (shard.value > 2) return std::nullopt;
  return std::array<size_t, 3>{3, 13, 300}[shard.value];
}

absl::StatusOr<LogRecord> Decode(const ByteChain& bytes) {
  return DecodeRecord(bytes, /*worker_count=*/4, ValueCount);
}

void AppendBytes(std::span<const std::byte> more, std::vector<std::byte>& bytes) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

std::string PayloadHead(bool push, uint32_t shard) {
  LogRecordHead head;
  head.mutable_shard()->set_shard(shard);
  if (push) {
    head.mutable_shard()->mutable_push()->set_examples(1);
    head.mutable_shard()->mutable_push()->mutable_read_form()->set_published(true);
  } else {
    head.mutable_shard()->mutable_seed();
  }
  return head.SerializeAsString();
}

// Returns the record of an input of KIND.
std::vector<std::byte> RecordOf(uint8_t kind, uint8_t n, std::span<const std::byte> bytes) {
  std::vector<std::byte> record;
  if (kind % 4 == 0) {
    AppendBytes(bytes, record);
    return record;
  }
  const std::string made = PayloadHead(kind % 4 == 2, n % 3);
  std::span<const std::byte> head = std::as_bytes(std::span(made));
  if (kind % 4 == 1) {
    head = bytes.first(std::min<size_t>(n, bytes.size()));
    bytes = bytes.subspan(head.size());
  }
  const auto length = static_cast<uint32_t>(head.size());
  AppendBytes(std::as_bytes(std::span(&length, 1)), record);
  AppendBytes(head, record);
  AppendBytes(bytes, record);
  return record;
}

// Returns the bytes in pieces of their own memory, so that a sanitizer detects reads beyond them.
ByteChain Pieces(std::span<const std::byte> bytes, size_t piece_bytes) {
  ByteChain chain;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
    chain.Append(ByteChain(std::vector<std::byte>(piece.begin(), piece.end())));
    bytes = bytes.subspan(piece.size());
  }
  return chain;
}

void Check(const ByteChain& bytes) {
  const auto record = Decode(bytes);
  if (!record.ok()) {
    if (record.status().code() != absl::StatusCode::kDataLoss) abort();
    return;
  }
  const ByteChain encoded = EncodeRecord(*record);
  const auto again = Decode(encoded);
  if (!again.ok() || !(EncodeRecord(*again) == encoded)) abort();
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(3);
  thinwire::Check(thinwire::Pieces(thinwire::RecordOf(data[0], data[2], bytes), 1 + data[1]));
  return 0;
}
