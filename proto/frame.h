// The two messages of the data plane (parameter_service.proto), parsed and written by hand, so that
// payloads are shared and never copied. The bytes are valid protobuf: generated classes read and
// write the same messages.
//
// A frame is one encoded WorkerMessage or ServerMessage. Its entries are the submessages: seeds,
// pushes, reads, verdicts, parameters and waits. A frame contains the fields of the message in the
// order of their numbers; each payload is the last field of its entry.
//
// Like protobuf, the parser skips unknown fields and uses the last value of a scalar field that
// occurs several times. The parser never reads beyond its input. It limits the number of entries;
// otherwise a message of a few MiB that consists of empty entries would take a hundred times its
// size in memory.
#ifndef THINWIRE_PROTO_FRAME_H_
#define THINWIRE_PROTO_FRAME_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// The maximum number of entries in a message.
inline constexpr size_t kMostEntries = 65536;

// The values of read_codec that are not codec ids: kReadDeltas requests the published changes since
// held_version, kReadPublished requests all published values.
inline constexpr uint32_t kReadDeltas = 64;
inline constexpr uint32_t kReadPublished = 65;

// Returns whether FACTOR may multiply a learning rate.
inline bool IsRateFactor(float factor) { return factor >= 0 && std::isfinite(factor); }

struct SeedEntry {
  ShardId shard;
  ByteChain payload;
  bool operator==(const SeedEntry&) const = default;
};

struct PushEntry {
  ShardId shard;
  Step step;
  uint32_t examples = 0;
  uint32_t late_examples = 0;
  Version computed_version;
  Version held_version;
  uint32_t read_codec = 0;
  float rate_factor = 1;
  bool follows = false;
  ByteChain payload;
  bool operator==(const PushEntry&) const = default;
};

struct ReadEntry {
  ShardId shard;
  Step step;
  Version held_version;
  uint32_t read_codec = 0;
  bool follows = false;
  bool operator==(const ReadEntry&) const = default;
};

// The contents of a WorkerMessage (parameter_service.proto).
struct WorkerFrame {
  WorkerId worker;
  Incarnation incarnation;
  Generation generation;
  Epoch epoch;
  std::vector<SeedEntry> seeds;
  std::vector<PushEntry> pushes;
  std::vector<ReadEntry> reads;
  uint32_t member = 0;
  bool operator==(const WorkerFrame&) const = default;
};

struct VerdictEntry {
  ShardId shard;
  Step step;
  uint32_t kind = 0;  // PushVerdict.Kind of parameter_service.proto
  bool again = false;
  Step frontier;
  Version version;
  bool operator==(const VerdictEntry&) const = default;
};

struct ParametersEntry {
  ShardId shard;
  Step step;
  Version version;
  Version base_version;
  uint32_t kind = 0;  // Parameters.Kind of parameter_service.proto
  Step frontier;
  bool more = false;
  uint64_t published_hash = 0;
  // The index list of the values that gTop-k selected (common/codec/sparse/index_list.h). Empty
  // unless unselected values return to workers.
  ByteChain selected;
  uint32_t steps_ahead = 0;
  bool holds_pushes = false;
  ByteChain payload;
  bool operator==(const ParametersEntry&) const = default;
};

struct WaitingEntry {
  ShardId shard;
  Step step;
  Step frontier;
  std::vector<WorkerId> workers;
  bool unseeded = false;
  uint32_t live = 0;
  uint32_t wanted = 0;
  bool seed = false;
  bool operator==(const WaitingEntry&) const = default;
};

// The contents of a ServerMessage (parameter_service.proto).
struct ServerFrame {
  Generation generation;
  Epoch epoch;
  std::vector<VerdictEntry> verdicts;
  std::vector<ParametersEntry> parameters;
  std::vector<WaitingEntry> waits;
  bool operator==(const ServerFrame&) const = default;
};

// Parse a frame. Payloads share the memory of BYTES. Errors: InvalidArgument with the position and
// the problem, also for more than MOST_ENTRIES entries.
absl::StatusOr<WorkerFrame> ParseWorkerFrame(const ByteChain& bytes,
                                             size_t most_entries = kMostEntries);
absl::StatusOr<ServerFrame> ParseServerFrame(const ByteChain& bytes);

// Returns the bytes of a frame: shared payloads, and one buffer for everything else. REQUIRES: at
// most kMostEntries entries, or no peer will accept it.
ByteChain WriteFrame(const WorkerFrame& frame);
ByteChain WriteFrame(const ServerFrame& frame);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_FRAME_H_
