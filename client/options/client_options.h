// ClientOptions: the settings of one worker's client.
#ifndef THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_
#define THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/spec/group_spec.h"
#include "common/spec/push_spec.h"
#include "common/time/trace.h"
#include "proto/job.pb.h"

namespace thinwire {

struct ClientOptions {
  std::string job = "train";
  // The configuration of the whole job, which every server compares with its own configuration at
  // Join; nullopt: servers do not compare it. A program that trains its own model with this library
  // leaves the task in the configuration unset.
  std::optional<JobConfig> config;
  // Hashes of the dataset and of the model file. Servers check that all workers have the same
  // hashes; 0: not checked.
  uint64_t data_hash = 0;
  uint64_t model_file_hash = 0;
  // The hash of the first values that servers compare with those of other workers; 0: not compared.
  // nullopt: that of the values that Join gets.
  std::optional<uint64_t> initial_hash;
  WorkerId worker;
  // With members above 1: the number of this process among those of the worker, and the tensors that
  // it owns, by their positions in the model, ascending. Empty: all.
  uint32_t member = 0;
  std::vector<uint32_t> owned_tensors;
  uint32_t worker_count = 1;
  uint32_t server_count = 1;
  uint64_t shard_size = 0;  // values per shard; 0: chosen by Partition::Make
  // All parameter groups, from group 0 (JobSpec::AllGroups); none: the tensors have no groups.
  std::vector<GroupSpec> groups;
  uint64_t planned_examples = 0;  // examples of all workers in the whole run
  uint64_t planned_steps = 0;     // steps of the whole run; used only for the warm-up
  CodecSpec push;
  // If set, the client chooses the push codec at run time, from `candidates` and fp32, and ignores
  // `push` and `warmup`. Candidates are in order of preference: the most exact first.
  std::optional<ChoiceRule> choose;
  std::vector<CodecSpec> candidates;
  // push: adaptive. The lead chooses the arm of each generation. The arm `fastest` is the rule of
  // `choose`; `push` and `warmup` have no effect.
  std::vector<AdaptiveSpec::Arm> arms;
  // The codec in which servers send whole parameters. nullopt: the client reads the published
  // parameters, as deltas from the version of its replica (docs/deltas.md).
  std::optional<CodecId> pull = CodecId::kFp32;
  // The caller begins a step with older parameters if the servers permit it (docs/client.md, "Steps
  // in flight"). Has no effect with `choose`, which measures each step's pushes alone.
  bool works_ahead = false;
  bool error_feedback = true;
  double residual_decay = 1;  // PushSpec::residual_decay
  PushWarmup warmup;
  CorrectionOptions correction;
  double gradient_clip = 0;  // limit on the norm of the workers' summed gradients; 0: no limit
  // The number of fragments of the model that the caller may push one after the other in a step
  // (client/parts/fragments.h), with gradient_clip 0. Client::Make refuses more than the shards.
  uint32_t fragments = 1;
  // The folder in which StateSaver keeps the worker's state; empty: the state is not saved.
  std::string state_dir;
  // host:port of the worker's status page, to which the lead's page links; empty: none.
  std::string page;
  // The allocator of all arrays with one element per parameter: replica, residuals and momentum.
  // Must outlive the client.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  // Join calls a server that it cannot reach again for this long, so that workers may start before
  // their servers.
  absl::Duration start_timeout = absl::Seconds(60);
  // The first Join has no such limit. For a scheduler that starts servers at an unknown time.
  bool wait_for_servers = false;
  // The job's lease. If another process had the worker's number, Join waits up to one lease.
  absl::Duration lease = absl::Seconds(10);
  // The client fails if it receives nothing from a server for longer than this duration, unless
  // `server_return` is longer.
  absl::Duration silence = absl::Seconds(10);
  // The client waits at least this long for a server that does not respond, because the server may
  // come back with its state. 0: `silence`.
  absl::Duration server_return;
  // The longest time from Stop to the end of Leave, without the caller's own computation.
  absl::Duration drain = absl::Seconds(30);
  // Records the client's activities, and the offsets of the servers' clocks. Must outlive the
  // client and the transport; null: no trace.
  Tracer* tracer = nullptr;
  // The longest time between two heartbeats. Frequent heartbeats also keep gRPC's threads awake.
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
};

// Returns whether a client with OPTIONS begins steps with older parameters.
inline bool WorksAhead(const ClientOptions& options) {
  return options.works_ahead && !options.choose.has_value();
}

// Validates the options that concern pushes, `pull` and the durations. Errors: InvalidArgument with
// a list of all problems.
absl::Status CheckOptions(const ClientOptions& options);

// The push codec that a client chose for a group of tensors, and the reason for the choice.
struct GroupCodec {
  std::string group;  // "matrices", "convolutions" or "vectors"
  std::string codec;
  std::string reason;  // why the codec was chosen, as text for people

  bool operator==(const GroupCodec&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_OPTIONS_CLIENT_OPTIONS_H_
