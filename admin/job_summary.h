// JobSummary is the state of a whole job, from the histories of all known servers, with its figures
// as texts.
#ifndef THINWIRE_ADMIN_JOB_SUMMARY_H_
#define THINWIRE_ADMIN_JOB_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "admin/server_history.h"
#include "proto/control.pb.h"

namespace thinwire {

// A verdict on pushes, and the function that returns the number of pushes that have it.
struct PushVerdict {
  const char* name;
  uint64_t (StatusReply::*count)() const;
};
std::span<const PushVerdict> PushVerdicts();

// Returns the number of parameters in the shards of REPLY.
uint64_t ValueCountOf(const StatusReply& reply);

// A worker as all servers together see it.
struct WorkerSight {
  uint64_t incarnation = 0;
  bool live = false;
  bool left = false;
  bool silent = false;        // live, and more than half of its lease has passed
  absl::Duration lease_left;  // at the first server
  bool finished = false;      // left after the last step
  bool failed = false;        // left because of an error
  std::string diverged;       // left with this symptom
  uint64_t next = std::numeric_limits<uint64_t>::max();  // the smallest one
  absl::Duration heard = absl::InfiniteDuration();       // since the last sign of life
  WorkerProgress progress;

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

// How far the job has trained, as the lead knows it from the workers. Programs that state nothing
// leave figures unknown.
struct TrainingStatus {
  uint64_t planned_steps = 0;              // 0: unknown
  std::optional<double> steps_per_second;  // over about the last minute
  std::optional<absl::Duration> left;      // until the last planned step, at this speed
  double examples_per_second = 0;          // of the live workers, since their start; 0: unknown
  std::optional<double> loss;              // TrainingCurves::loss, the newest one
  ModelTest test;                          // the newest one
  std::set<std::string> push;              // the codecs of the live workers; see WorkerProgress
  std::string pull;
};

// Figures of the whole job, from all servers without an outage.
struct JobSummary {
  std::string job;
  uint64_t generation = 0;         // the largest one
  RuleStatus rule;                 // of the first server that answers
  std::string next_mode;           // "async from step 40 on"; "": no change is announced
  uint32_t answered_count = 0;     // servers without an outage
  std::vector<uint32_t> insecure;  // servers that listen for other machines without credentials
  uint64_t step = 0;               // the first step that some shard has not finished
  absl::Duration step_age;         // ServerHistory::step_age of `step`, the longest one
  uint32_t target_workers = 0;     // the workers that the operator wants; 0: unknown
  uint32_t worker_count = 0;       // workers that ever joined
  std::vector<uint32_t> live;
  // The live workers that have not finished `step`, ascending. Empty during the outage of a server,
  // when all workers may wait for it.
  std::vector<uint32_t> unfinished;
  std::map<std::string, uint64_t> verdicts;  // verdict -> pushes
  std::map<uint64_t, uint64_t> staleness;    // staleness -> accepted pushes
  double mean_staleness = 0;
  NoiseSums noise;
  BatchStatus batch;
  ClippingStatus clipping;
  TrainingStatus training;
  // push: adaptive: the last decision, "fp8_e5m2 up to step 1,100"; "": none yet.
  std::string push_choice;
  // Bytes of payloads, and an estimate of the bytes of the same values in fp32, from the number of
  // pushes.
  uint64_t push_bytes = 0;
  uint64_t push_fp32_bytes = 0;
  uint64_t parameter_bytes = 0;
  uint64_t parameter_fp32_bytes = 0;
};

JobSummary SummaryOf(std::span<const ServerHistory> servers, absl::Time now);

// Returns the examples per second of a worker since its start; 0: unknown.
double SpeedOf(const WorkerProgress& progress);
// Returns "412 of 2,000", or "412" if the planned steps are unknown.
std::string StepText(const JobSummary& summary);
// Return "2.5 steps/s, 410 examples/s", the time left, and "accuracy 0.8925 at step 400"; "-" if
// nothing is known.
std::string SpeedText(const TrainingStatus& training);
std::string TimeLeftText(const TrainingStatus& training);
std::string TestText(const ModelTest& test);
// Returns "push fp8_e5m2; pull bf16"; "-" if they are unknown.
std::string CodecsText(const TrainingStatus& training);
// Returns "worker 3" or "workers 0, 3".
std::string NumbersText(const char* noun, const std::vector<uint32_t>& numbers);
// Returns the noise scale with its unit, such as "4,100 examples"; "-" without one.
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

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_JOB_SUMMARY_H_
