// StoredState is a job's state on disk (docs/recovery.md). At the start of a server, it restores the
// job from the newest checkpoint and the records of the event log. Later it records the run and the
// members, and describes them for the next checkpoint.
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_EDGE_STORED_STATE_H_
#define THINWIRE_SERVER_EDGE_STORED_STATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint.h"
#include "server/durable/files.h"
#include "server/durable/log_record.h"
#include "server/edge/hosted_model.h"
#include "server/edge/job_match.h"
#include "server/edge/journal.h"
#include "server/edge/membership.h"

namespace thinwire {

// Where and how a server keeps its state on disk.
struct DurableOptions {
  Files* files = nullptr;  // must outlive the job
  std::string folder;      // the server's folder, which exists and belongs to this process alone
  absl::Duration checkpoint_interval = absl::Seconds(60);
  // Called once if the log cannot be written any more. The server then accepts nothing.
  std::function<void(const absl::Status&)> failed = [](const absl::Status&) {};
};

class StoredState {
 public:
  // The job that the state belongs to.
  struct Owner {
    std::string job;
    ServerId server;
    Generation generation;
    uint32_t max_workers = 0;
  };
  // The parts of the job that are restored. They must outlive this object.
  struct Parts {
    ModelSlot& model;
    Membership& membership;
    JobMatch& job_match;
    Journal& journal;
  };

  StoredState(Owner owner, const Parts& parts) : owner_(std::move(owner)), parts_(parts) {}

  // Restores the state in the folder, if there is one, and starts the log. Every process that has
  // not left has a lease from NOW on. Errors: DataLoss if the state is damaged; FailedPrecondition
  // if it belongs to another job or if the configuration differs; errors of the file system.
  absl::Status Recover(const DurableOptions& options, absl::Time now);

  // Returns the record of the run; nullopt before the model is defined.
  const std::optional<BeginRecord>& run() const { return run_; }

  // Records the run, with the first worker's REQUEST, and all members.
  void RecordRun(RunId run, const JoinRequest& request);
  // Records the state of the worker's number; calls THEN when it is durable.
  void RecordMember(WorkerId worker, std::function<void()> then);

  // Returns a checkpoint without shards. REQUIRES: run() is set.
  Checkpoint Head() const;

 private:
  absl::Status Restore(const BeginRecord& record);
  void Restore(const MemberRecord& record);
  absl::Status Restore(const Checkpoint& checkpoint);
  absl::Status Replay(LogSequence sequence, const ByteChain& bytes);
  MemberRecord MemberRecordOf(WorkerId worker) const;

  const Owner owner_;
  const Parts parts_;
  std::string folder_;  // empty: the job is not durable
  absl::Time now_;      // the time of Recover
  std::optional<BeginRecord> run_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_STORED_STATE_H_
