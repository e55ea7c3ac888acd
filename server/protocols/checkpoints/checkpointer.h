// Checkpointer writes checkpoints of a server while training goes on.
//
//   Start -> strand of each shard: save -> control thread: add run and members -> writer thread:
//   write the files, then remove the part of the log that no recovery needs
//
// A shard saves its state between two events: masters are lent until the next update, other arrays
// are copied. Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINTER_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "common/time/trace.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint.h"
#include "server/durable/files.h"
#include "server/durable/retention.h"
#include "server/durable/test_result.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"

namespace thinwire {

// Returns the time between two checkpoints that loses the least: sqrt(2 COST FAILURE_INTERVAL), at
// least one second. COST is the time that a checkpoint takes; nullopt: not known yet.
// FAILURE_INTERVAL is the mean time between two failures (J. Young, A first order approximation to
// the optimum checkpoint interval, 1974).
absl::Duration AutomaticInterval(std::optional<absl::Duration> cost,
                                 absl::Duration failure_interval);

// The steps of the shards in a checkpoint; nullopt: the server has no shard.
struct SavedSteps {
  std::optional<Step> least, largest;

  bool operator==(const SavedSteps&) const = default;
};

class Checkpointer {
 public:
  struct Options {
    std::string folder;
    absl::Duration interval;          // 0: AutomaticInterval
    absl::Duration failure_interval;  // used if `interval` is 0
    bool keep_log = false;            // a checkpoint removes no event from the log
    RetentionSpec retention;          // the checkpoints that are kept
    // No checkpoint is removed before the first call of Keep: the servers of an aligned job learn
    // from the lead which of their checkpoints are kept.
    bool awaits_keep = false;
    Tracer* tracer = nullptr;                               // null: no trace
    std::shared_ptr<const Checkpoint>* snapshot = nullptr;  // see DurableOptions
  };

  // Gets the number of a started checkpoint, from 1, when it is on disk or has failed.
  using Ended = std::function<void(uint64_t number, const absl::StatusOr<SavedSteps>&)>;

  // HEAD returns a checkpoint without shards; it is called on the control thread when all shards
  // are saved. ENDED is called there for one checkpoint after the other. WRITER writes the files.
  // FILES, JOURNAL, CLOCK and CONTROL, the control thread, must outlive this object.
  Checkpointer(Files& files, Options options, Journal& journal, Clock& clock, Executor& control,
               std::unique_ptr<Executor> writer, std::function<Checkpoint()> head, Ended ended);
  // Blocks until the checkpoints that are queued or being written are complete or have failed. No
  // checkpoint is written afterwards.
  void Stop() { writer_->Finish(); }
  ~Checkpointer() { Stop(); }

  // Starts a checkpoint of MODEL, unless the shards of an earlier one are still being saved. Each
  // shard is saved as soon as its frontier has reached FROM. A failed checkpoint is logged; the
  // older ones remain. Returns whether it has started one.
  bool Start(const HostedModel& model, Step from);
  // Calls Start with step 0 if the last call was interval() ago or longer and no checkpoint is
  // being written.
  void StartIfDue(absl::Time now, const HostedModel& model);
  // Keeps the checkpoints of STEPS from now on, instead of those of an earlier call. Others are
  // removed when they are old (WriteCheckpoint).
  void Keep(std::vector<Step> steps) {
    kept_ = {.retention = options_.retention, .steps = std::move(steps)};
  }
  // The next checkpoint of which all shards are saved is the one after TEST.
  void SetTest(const TestResult& test) { test_ = test; }
  // Starts the last checkpoint: shards no longer wait for a step.
  void StartLast(const HostedModel& model);
  // If the shards of a checkpoint wait for a step, they no longer wait for it.
  void SaveEarly(const HostedModel& model);
  // Makes the checkpoint of STEP the state from which the next job begins under GENERATION: the
  // snapshot in memory if it is of this step, otherwise that on disk (ContinueFrom). Then calls DONE
  // on the control thread. No other checkpoint is written any more.
  void RollBack(Step step, Generation generation, std::function<void(const absl::Status&)> done);

  // Returns the time between two checkpoints.
  absl::Duration interval() const;
  // Returns whether Start can ever start a checkpoint of MODEL.
  bool can_save(const HostedModel& model) const {
    return !model.hosts().empty() || !journal_.logs();
  }
  // Returns whether the shards of a checkpoint are being saved, and whether a checkpoint is queued
  // or being written.
  bool saving() const { return saving_; }
  bool writing() const { return queued_count_ > 0; }
  bool in_progress() const { return saving() || writing(); }
  // Returns the number of started checkpoints, which is that of the newest one.
  uint64_t started_count() const { return started_count_; }
  // Returns the largest step from which on a checkpoint was started; nullopt: none was started.
  std::optional<Step> newest_from() const { return newest_from_; }
  // Returns the steps of the checkpoints from which a rollback can continue, in ascending order.
  const std::vector<Step>& steps() const { return stored_.steps; }
  // Returns the checkpoints after a test, the best test first.
  const std::vector<TestedCheckpoint>& tested() const { return stored_.tested; }
  // Sets the counters of the checkpoints in REPLY.
  void FillIn(StatusReply& reply) const;

 private:
  // The checkpoints in the folder.
  struct Stored {
    std::vector<Step> steps;
    std::vector<TestedCheckpoint> tested;
  };

  void Complete(std::vector<SavedShard> shards, Step from, uint64_t number);
  // Runs on the writer thread.
  void Write(const Checkpoint& checkpoint, const KeptCheckpoints& kept, absl::Time start,
             uint64_t number);
  Stored ReadStored();
  // Returns the bytes of the shards' files of the newest checkpoint; 0 if its manifest is
  // unreadable.
  uint64_t NewestBytes() const;

  Files& files_;
  const Options options_;
  Journal& journal_;
  Clock& clock_;
  Executor& control_;
  const std::function<Checkpoint()> head_;
  const Ended ended_;
  KeptCheckpoints kept_;
  absl::Time last_start_ = absl::InfinitePast();
  uint64_t started_count_ = 0;
  std::optional<Step> newest_from_;
  bool saving_ = false;                 // a checkpoint waits for the states of shards
  int queued_count_ = 0;                // checkpoints that are queued or being written
  bool rolled_back_ = false;            // RollBack was called
  std::optional<absl::Duration> cost_;  // the time that the last checkpoint took
  LogLimit failure_lines_{10, absl::Minutes(1)};
  std::optional<TestResult> test_;  // see SetTest
  Stored stored_;
  // Since the server's start. The time and the bytes are those of completed checkpoints.
  uint64_t completed_count_ = 0;
  uint64_t failed_count_ = 0;
  absl::Duration total_time_;
  uint64_t total_bytes_ = 0;
  const std::unique_ptr<Executor> writer_;  // last, because its tasks use the members above
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINTER_H_
