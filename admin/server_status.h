// The status of a job's servers as page, JSON and metrics. ServerHistory adds to the newest
// StatusReply of one server the times that the reply does not have; the functions show the
// histories of all known servers.
#ifndef THINWIRE_ADMIN_SERVER_STATUS_H_
#define THINWIRE_ADMIN_SERVER_STATUS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "admin/metrics.h"
#include "admin/status_table.h"
#include "common/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// Not thread-safe.
class ServerHistory {
 public:
  explicit ServerHistory(ServerId server) : server_(server) {}

  // Records a reply that arrived at NOW.
  void Add(StatusReply reply, absl::Time now);

  ServerId server() const { return server_; }
  // Returns the newest reply; null if the server has not answered yet.
  const StatusReply* latest() const { return latest_ ? &*latest_ : nullptr; }
  absl::Time answered() const { return answered_; }
  // Returns the first step that some shard has not finished.
  uint64_t step() const { return step_; }
  // Returns the time from the first to the newest reply in which step() was the open step: at most
  // as long as the step has really been open.
  absl::Duration step_age() const { return answered_ - step_since_; }
  // Returns the time at which the newest checkpoint was first seen; nullopt if there is none.
  std::optional<absl::Time> checkpointed() const { return checkpointed_; }
  // Return the part of the log since the newest checkpoint, which a recovery would replay.
  uint64_t replay_record_count() const;
  uint64_t replay_bytes() const;

 private:
  const ServerId server_;
  std::optional<StatusReply> latest_;
  absl::Time answered_;
  uint64_t step_ = 0;
  absl::Time step_since_;  // the arrival of the first reply with `step_`
  std::optional<absl::Time> checkpointed_;
  uint64_t checkpoint_record_count_ = 0;  // log_records at `checkpointed_`
  uint64_t checkpoint_log_bytes_ = 0;     // log_bytes at `checkpointed_`
};

// A worker as all servers together see it.
struct WorkerSight {
  uint64_t incarnation = 0;
  bool live = false;
  bool left = false;
  uint64_t next = std::numeric_limits<uint64_t>::max();  // the smallest one
  absl::Duration heard = absl::InfiniteDuration();       // since the last sign of life

  // Returns "live", "left" or "not live".
  const char* state() const;
};

// Returns the workers that ever joined, by number. The first server decides which of them are live.
std::map<uint32_t, WorkerSight> WorkersOf(std::span<const ServerHistory> servers, absl::Time now);

// Sums of the noise of the gradients over the shards of a job
// (server/core/update/gradient_noise.h).
struct NoiseSums {
  double variance = 0;
  double squared_gradient = 0;

  // Adds the shards of REPLY.
  void Add(const StatusReply& reply);
  // Returns the noise scale in examples (docs/large_batches.md), or nullopt if it was not measured or is
  // too uncertain.
  std::optional<double> scale() const;
};

// The batch of an update that grows with `schedule: noise_scale`, as the lead states it.
struct BatchStatus {
  uint32_t examples = 0;        // of an update; 0: the batch does not grow
  uint32_t accumulate = 0;      // batches that each worker accumulates for it
  uint32_t epoch_examples = 0;  // of the training set
  uint32_t wished_workers = 0;  // that would make it without accumulation; 0: no worker accumulates

  // Copies the fields of REPLY if it has them. Only the lead's reply does.
  void Add(const StatusReply& reply);
};

// The averaged gradients of a job with clip_norm, as the lead states them.
struct ClippingStatus {
  double gradient_norm = 0;      // of the newest round, before clipping; 0: none yet
  uint64_t clipped_updates = 0;  // since the lead's start

  // Copies the fields of REPLY if it has them. Only the lead's reply does.
  void Add(const StatusReply& reply);
};

// The consistency rule in force at a server.
struct RuleStatus {
  std::string mode;                // sync, backup, ssp or async; "": unknown
  std::optional<uint32_t> backup;  // backup workers, in modes sync and backup
  std::optional<uint32_t> slack;   // in mode ssp
};
RuleStatus RuleStatusOf(const StatusReply& reply);

// Figures of the whole job, from all servers that have answered.
struct JobSummary {
  std::string job;
  RuleStatus rule;                 // of the first server that has answered
  std::string next_mode;           // "async from step 40 on"; "": no change is announced
  uint32_t answered_count = 0;     // servers that have answered
  std::vector<uint32_t> insecure;  // servers that listen for other machines without credentials
  uint64_t step = 0;               // the first step that some shard has not finished
  absl::Duration step_age;         // ServerHistory::step_age of `step`, the longest one
  uint32_t worker_count = 0;       // workers that ever joined
  std::vector<uint32_t> live;
  // The live workers that have not finished `step`, ascending.
  std::vector<uint32_t> unfinished;
  std::map<std::string, uint64_t> verdicts;  // verdict -> pushes
  std::map<uint64_t, uint64_t> staleness;    // staleness -> accepted pushes
  double mean_staleness = 0;
  NoiseSums noise;
  BatchStatus batch;
  ClippingStatus clipping;
  // push: adaptive: the last decision, "fp8_e5m2 up to step 1,100"; "": none yet.
  std::string push_choice;
  // Bytes of payloads, and an estimate of the bytes of the same values in fp32, from the number of
  // pushes.
  uint64_t push_bytes = 0;
  uint64_t push_fp32_bytes = 0;
  uint64_t parameter_bytes = 0;
  uint64_t parameter_fp32_bytes = 0;
};

// Return a row for each worker that ever joined, and for each server.
StatusTable WorkerTable(std::span<const ServerHistory> servers, absl::Time now);
StatusTable ServerTable(std::span<const ServerHistory> servers, absl::Time now);
// Returns a row for each server with an event log or checkpoints.
StatusTable DurabilityTable(std::span<const ServerHistory> servers, absl::Time now);
// Returns the bytes of gradients and parameters beside an estimate of those in fp32.
StatusTable BytesTable(const JobSummary& summary);

// Returns "worker 3" or "workers 0, 3".
std::string WorkerListText(const std::vector<uint32_t>& workers);
// Returns the noise scale with its unit, such as "4.1e+03 examples"; "-" without one.
std::string NoiseScaleText(const NoiseSums& noise);
// Returns "512 examples, 4 batches per worker", with the wish for workers; "-" if the batch does
// not grow.
std::string BatchText(const BatchStatus& batch);
// Returns "norm 0.513, 12 updates clipped"; "-" if no norm is known.
std::string ClippingText(const ClippingStatus& clipping);
// Returns "INSECURE: server 0 listens for other machines without credentials" for these servers.
std::string InsecureText(const std::vector<uint32_t>& servers);

// Returns the mode, with the number of backup workers or the slack, and a change that is announced:
// "backup 2", "sync, async from step 40 on". Returns "-" if the mode is unknown.
std::string ModeText(const JobSummary& summary);

JobSummary SummaryOf(std::span<const ServerHistory> servers, absl::Time now);

// Returns the body of a status page.
std::string ServersHtml(std::span<const ServerHistory> servers, absl::Time now);
// Returns {"servers": [{"server", "answered_seconds_ago", "status": StatusReply as protobuf JSON}],
// "summary": {...}}.
nlohmann::ordered_json ServersJson(std::span<const ServerHistory> servers, absl::Time now);
// Adds the metrics of one server, which are those of its own process.
void AddServerMetrics(const ServerHistory& server, absl::Time now, MetricList& metrics);

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SERVER_STATUS_H_
