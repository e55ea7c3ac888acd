// JobOptions are the settings of one server of a job, and JobExecutors what runs its tasks.
#ifndef THINWIRE_SERVER_JOB_JOB_OPTIONS_H_
#define THINWIRE_SERVER_JOB_JOB_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/push_spec.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/spec/shared_tensors.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/trace.h"
#include "proto/job.pb.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/shard.h"
#include "server/core/update/updater.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/relay/round_relay.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/shard_observer.h"

namespace thinwire {

struct JobOptions {
  std::string name = "train";
  // The job configuration that every worker must have. nullopt: the server does not compare
  // configurations.
  std::optional<JobConfig> config;
  ServerId server;  // the number of this server; server 0 assigns incarnations
  uint32_t server_count = 1;
  Rule rule;
  uint32_t member_count = 1;  // JobSpec::members
  // The lead changes the number of backup workers or the slack at run time (wait_tuner.h).
  bool auto_rule = false;
  std::vector<GroupSpec> groups;           // all parameter groups; none: every tensor is in group 0
  std::vector<GroupUpdate> group_updates;  // the update of each parameter group, from group 0
  SparseUpdateSpec sparse_updates;
  StalenessSpec staleness;
  std::optional<GrowthSpec> growth;       // nullopt: the batch does not grow
  std::optional<PublishOptions> publish;  // nullopt: the job publishes no deltas
  std::optional<AdaptiveSpec> adaptive;   // push: adaptive; needs durability: checkpoint
  double clip_norm = 0;  // JobSpec::clip_norm; above 0 only in mode sync without an event log
  absl::Duration lease = absl::Seconds(10);
  absl::Duration start_timeout = absl::Seconds(60);
  Epoch epoch;            // larger than those of earlier processes of this server
  RunId run{1};           // the run that server 0 begins; not 0; the other servers ignore it
  std::string token_key;  // the key of this run's tokens; "": the job makes no tokens
  Generation generation{1};
  // The memory that this process may use (memory_plan.h).
  uint64_t memory_budget_bytes = std::numeric_limits<uint64_t>::max();
  std::optional<DurableOptions> durable;  // nullopt: the state is lost with the process
  bool insecure = false;  // the server listens for other machines without credentials
  std::string page;       // host:port of this server's status page; empty: none
  // Called when an operator drains this server: the owner of the job is to stop it and to exit.
  std::function<void()> drained = [] {};
  // Records the server's activities. HeartbeatReply.unix_micros is then the time of its clock. Must
  // outlive the job; null: no trace.
  Tracer* tracer = nullptr;
  // Allocates the shards' arrays. Must outlive all gRPC calls, because gRPC may still send
  // masters after the job is destroyed.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  ShardObserver* observer = nullptr;  // must outlive the job; null: nobody observes the shards
  // Makes the updates of the shards. Must outlive the job, and must call no `done` after its end.
  // Null: the shards make them. REQUIRES: the job has one server, a rule with rounds and no log.
  RoundRelay* relay = nullptr;
  Step relayed_until;  // ShardOptions::relayed_until
};

// Make the executors of a job.
struct JobExecutors {
  ExecutorFactory& threads;     // the control thread and the log
  ExecutorFactory& background;  // the writer of checkpoints, which uses time that training leaves
  ExecutorFactory& shards;      // the strands of the shards
  Clock& unix_clock;  // counts from the Unix epoch: the time of HeartbeatReply.unix_micros
};

// Returns whether full rounds may wait for sums over shards (ShardSums).
bool MayNeedSums(const JobOptions& options);
// Returns the settings of every shard.
ShardOptions ShardOptionsOf(const JobOptions& options);
// Returns the settings that decide whether shards may share a tensor.
SharedTensorSettings SharedTensorSettingsOf(const JobOptions& options);
// Returns the state of a job that has not begun.
JobState FirstState(const JobOptions& options);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_OPTIONS_H_
