// A libFuzzer target for DecodeRecord (server/durable/log_record.h). A decoded record survives a
// round trip; all other bytes are DataLoss. The first byte of an input determines how the record is
// split into pieces. run.sh builds and runs this target.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

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

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0];
  thinwire::ByteChain chain;
  for (size_t at = 1; at < size; at += piece) {
    const auto* begin = reinterpret_cast<const std::byte*>(data + at);
    chain.Append(
        thinwire::ByteChain(std::vector<std::byte>(begin, begin + std::min(piece, size - at))));
  }
  const auto record = thinwire::Decode(chain);
  if (!record.ok()) {
    if (record.status().code() != absl::StatusCode::kDataLoss) abort();
    return 0;
  }
  const thinwire::ByteChain bytes = EncodeRecord(*record);
  const auto again = thinwire::Decode(bytes);
  if (!again.ok() || !(EncodeRecord(*again) == bytes)) abort();
  return 0;
}
