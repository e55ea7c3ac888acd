// ClientOptions: the settings of one worker's client. A value type.
#ifndef THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_
#define THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/spec/push_spec.h"
#include "proto/job.pb.h"

namespace thinwire {

struct ClientOptions {
  std::string job = "train";
  // The whole job. The servers compare it with their own job at each Join; nullopt: they compare
  // nothing. A program that trains its own model leaves `task` unset.
  std::optional<JobConfig> config;
  // Hashes of the data and of the model file, which servers compare among workers; 0: not compared.
  uint64_t data_hash = 0;
  uint64_t model_file_hash = 0;
  WorkerId worker;
  uint32_t worker_count = 1;
  uint32_t server_count = 1;
  uint64_t shard_size = 0;        // values per shard; 0: Partition::Make chooses
  uint64_t planned_examples = 0;  // of the whole run, all workers together
  uint64_t planned_steps = 0;     // of the whole run; used by the warm-up only
  CodecSpec push;
  // If set, the client chooses the push codec at run time, from `candidates` and fp32, and ignores
  // `push` and `warmup`. Candidates are in order of preference: the most exact first.
  std::optional<ChoiceRule> choose;
  std::vector<CodecSpec> candidates;
  // The codec in which servers send whole parameters; nullopt: the servers send the changes of the
  // published parameters since the version that the client holds (docs/deltas.md).
  std::optional<CodecId> pull = CodecId::kFp32;
  bool error_feedback = true;
  PushWarmup warmup;
  CorrectionOptions correction;
  double gradient_clip = 0;   // limit on the norm of all workers' gradients together; 0: no limit
  std::string residual_file;  // where SaveResiduals writes; empty: residuals are not saved
  // Holds the arrays with one element per parameter: replica, residuals and momentum. Must outlive
  // the client.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  absl::Duration silence = absl::Seconds(10);  // the client fails if a server is silent for longer
  // The longest time between two heartbeats. Heartbeats also keep gRPC's threads from sleeping.
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
};

// Validates the push options, `pull` and the durations. Errors: InvalidArgument that lists every
// problem.
absl::Status CheckOptions(const ClientOptions& options);

// The push codec that a client chose for a group of tensors, and why.
struct GroupCodec {
  std::string group;  // matrices, convolutions or vectors
  std::string codec;
  std::string reason;  // readable text

  bool operator==(const GroupCodec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_
