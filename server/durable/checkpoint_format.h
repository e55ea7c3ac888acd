// The contents of a checkpoint and their form in files (docs/checkpoint.md).
//
//   Checkpoint = BeginRecord, MemberRecords, deals, LeadRecord, shards
//   manifest   everything except the arrays, as JSON (proto/checkpoint.proto)
//   shard file the arrays of one shard, as safetensors
//
// Pure functions: thread-safe. The functions that decode trust no byte of their input.
#ifndef THINWIRE_SERVER_DURABLE_CHECKPOINT_FORMAT_H_
#define THINWIRE_SERVER_DURABLE_CHECKPOINT_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "proto/checkpoint.pb.h"
#include "proto/control.pb.h"
#include "server/core/shard_snapshot.h"
#include "server/durable/event_log.h"
#include "server/durable/log_record.h"
#include "server/durable/test_result.h"

namespace thinwire {

struct SavedShard {
  ShardId shard;
  LogSequence applied = 0;  // the last record that STATE contains
  ShardSnapshot state;
};

struct Checkpoint {
  ServerId server;
  BeginRecord run;
  std::vector<MemberRecord> members;  // ascending by worker; numbers without a process are absent
  std::vector<Deal> deals;            // at the lead: all deals so far
  std::optional<LeadRecord> lead;     // set at the lead
  std::vector<SavedShard> shards;     // ascending by shard
  LogSequence next = 1;               // the first record that a recovery must replay
  std::optional<Step> step;        // the frontier of every shard; nullopt if the frontiers differ
  std::optional<TestResult> test;  // the test after which the checkpoint was made
};

// Returns the frontier that all SHARDS have, or nullopt if the frontiers differ or there is no
// shard.
std::optional<Step> CommonFrontier(const std::vector<SavedShard>& shards);

// Returns whether all masters of SNAPSHOT are finite and its last update did not saturate.
bool IsHealthy(const ShardSnapshot& snapshot);

// Returns the manifest of CHECKPOINT. The fields of the shards that describe their files are empty.
CheckpointManifest ManifestOf(const Checkpoint& checkpoint);
// Returns the checkpoint of MANIFEST, without the arrays of its shards. Errors: InvalidArgument if
// a field is out of its range. ParseManifest has accepted MANIFEST.
absl::StatusOr<Checkpoint> CheckpointOf(const CheckpointManifest& manifest);

// Returns MANIFEST as JSON, with its checksum in the last line but one.
std::string PrintManifest(const CheckpointManifest& manifest);
// Returns the last two lines of a manifest whose other lines are BODY: the checksum of BODY and a
// brace.
std::string ManifestEnd(const std::string& body);
// Errors: InvalidArgument with the cause if TEXT has the wrong checksum or is not a manifest of
// this format.
absl::StatusOr<CheckpointManifest> ParseManifest(const std::string& text);

// Returns the name of the file of shard SHARD at version VERSION.
std::string ShardFileName(ShardId shard, Version version);
// Returns the bytes of a shard's file. The arrays keep their memory and their owners.
ByteChain EncodeShardFile(const SavedShard& saved);
// Sets the arrays of SAVED, whose other fields are set, to those of FILE, without a copy. Errors:
// InvalidArgument if FILE is no safetensors file with the arrays of a shard. Shard::Restore checks
// their sizes. REQUIRES: FILE is one piece of memory.
absl::Status DecodeShardFile(const ByteChain& file, SavedShard& saved);

// Returns the CRC-32C of BYTES as eight hexadecimal digits.
std::string HexCrc32c(const ByteChain& bytes);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_CHECKPOINT_FORMAT_H_
