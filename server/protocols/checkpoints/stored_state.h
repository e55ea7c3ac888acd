// StoredState is a job's state on disk (docs/recovery.md). At the start of a server, it restores
// the job from the newest checkpoint and, with durability: log, the records of the event log. Later
// it records the run, the members and the decisions of the lead, and describes them for the next
// checkpoint.
//
//   decision of the lead          durability: log     durability: checkpoint
//   admitted servers, reduction   event log           file `lead` (lead_file.h)
//   and drained workers
//   deals                         event log           ssp, async: file `lead`; sync, backup: the next
//                                                     checkpoint, because the servers go back to it
//   rule                          records of the      file `lead`
//                                 shards, file `lead`
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_STORED_STATE_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_STORED_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/time/executor.h"
#include "common/time/trace.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint.h"
#include "server/durable/files.h"
#include "server/durable/log_record.h"
#include "server/protocols/decision_store.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"

namespace thinwire {

// Where and how a server keeps its state on disk.
struct DurableOptions {
  Files* files = nullptr;  // must outlive the job
  std::string folder;      // the server's folder, which exists and belongs to this process alone
  Durability durability = Durability::kLog;                // not kNone
  absl::Duration checkpoint_interval = absl::Seconds(60);  // 0: automatic (checkpointer.h)
  absl::Duration failure_interval = absl::Hours(1);        // used by the automatic interval
  bool keep_log = false;                                   // checkpoints remove no event
  RetentionSpec retention;                                 // the checkpoints that are kept
  Tracer* tracer = nullptr;                                // null: no trace
  // durability: checkpoint, by round: a job that finds a state in the folder waits until the lead
  // names the checkpoint to continue from. False after a call of `restart`: the newest checkpoint
  // is the one that the lead has named.
  bool awaits_rollback = true;
  // push: adaptive: the owner's variable for the state of the newest checkpoint, to which the trials
  // return without reading files. The job sets it; a job that is made when it is set begins from this
  // state, under its generation. Must outlive the job. null: checkpoints are on disk only.
  std::shared_ptr<const Checkpoint>* snapshot = nullptr;
  // Called once, on a thread of the job, if the server cannot go back to a checkpoint, or if the
  // servers have no checkpoint in common. The server then accepts nothing.
  std::function<void(const absl::Status&)> failed = [](const absl::Status&) {};
  // Called once, on a thread of the job, if the event log cannot be written any more. The server
  // then confirms nothing.
  std::function<void(const absl::Status&)> log_failed = [](const absl::Status&) {};
  // Called once, on a thread of the job, when the lead has rolled this server back: the caller must
  // stop this job and make it anew. The server then accepts nothing.
  std::function<void()> restart = [] {};
};

// Returns the generation in which a server of a job with FOLD continues from its state, or 1 without
// a state. By push with durability: checkpoint, a server with a state first raises its
// generation on disk, because it continues alone. Errors: DataLoss if the state is damaged; errors
// of the file system.
absl::StatusOr<Generation> BeginGeneration(const DurableOptions& options, Fold fold);

class StoredState final : public DecisionStore {
 public:
  // The parts of the job that are restored. They must outlive this object.
  struct Parts {
    JobState& state;
    ModelSlot& model;
    Journal& journal;
    ExecutorFactory& threads;  // makes the executor of the log
  };

  explicit StoredState(const Parts& parts) : identity_(parts.state.identity), parts_(parts) {}

  // Restores the snapshot of OPTIONS or else the state in the folder, if there is one, and starts
  // the log, if there is one. Every process that has not left has a lease from NOW on. ALIGNED: all
  // servers go back to checkpoints of the same step. OPTIONS must outlive this object. Errors:
  // DataLoss if the state is damaged; FailedPrecondition if it belongs to another job or if the
  // configuration differs; errors of the file system.
  absl::Status Recover(const DurableOptions& options, bool aligned, absl::Time now);

  // Returns the record of the run; nullopt before the model is defined.
  const std::optional<BeginRecord>& run() const { return run_; }

  // Records the run with the key of its tokens, the first worker's REQUEST, and all members.
  void RecordRun(RunId run, const std::string& token_key, const JoinRequest& request);
  // Records the state of the worker's number; calls THEN when it is durable.
  void RecordMember(WorkerId worker, std::function<void()> then);

  void RecordLead(const Recorded& then) override;
  void RecordDeal(const Deal& deal, const Recorded& then) override;
  absl::Status StoreRule(const SetModeRequest& request) override;

  // Returns a checkpoint without shards. REQUIRES: run() is set.
  Checkpoint Head() const;

 private:
  absl::Status Restore(const BeginRecord& record);
  void Restore(const MemberRecord& record);
  void Restore(const LeadRecord& record);
  absl::Status Restore(const Checkpoint& checkpoint);
  // Restores the decisions that are in the file `lead`. STEP: that of the checkpoint.
  absl::Status RestoreLeadFile(std::optional<Step> step);
  // Returns DataLoss if the number of a worker in the checkpoint is too large.
  absl::Status CheckNumber(WorkerId worker) const;
  // Returns DataLoss if a number of a worker in RECORD is too large.
  absl::Status CheckNumbers(const LeadRecord& record) const;
  // Replays the log from record FIRST on and starts it. Returns the record after the last one.
  absl::StatusOr<LogSequence> StartLog(const DurableOptions& options, LogSequence first);
  absl::Status Replay(LogSequence sequence, const ByteChain& bytes);
  MemberRecord MemberRecordOf(WorkerId worker) const;
  LeadRecord LeadRecordNow() const;
  // Returns whether the decisions of the lead are in the file `lead` instead of the event log.
  bool keeps_lead_file() const { return durable_ != nullptr && !parts_.journal.logs(); }
  // Replaces the file `lead` by one with RULE.
  absl::Status WriteLeadFile(const std::optional<SetModeRequest>& rule) const;

  const JobIdentity& identity_;
  const Parts parts_;
  const DurableOptions* durable_ = nullptr;  // null: the job is not durable
  bool aligned_ = false;                     // see Recover
  std::string folder_;                       // empty: the job is not durable
  absl::Time now_;                           // the time of Recover
  std::optional<BeginRecord> run_;
  std::optional<SetModeRequest> rule_;  // in the file `lead`
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_STORED_STATE_H_
