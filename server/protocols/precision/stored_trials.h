// StoredTrials keeps the state of TrialRounds in the server's state folder, lets the Dealer hold
// the workers back at the end of a trial, and tells PrecisionLead when to return to a snapshot.
//
//   tests in heartbeats, frontier, checkpoints -> TrialRounds -> file -> step of the return
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_PRECISION_STORED_TRIALS_H_
#define THINWIRE_SERVER_PROTOCOLS_PRECISION_STORED_TRIALS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"
#include "proto/control.pb.h"
#include "server/durable/files.h"
#include "server/protocols/precision/trial_rounds.h"
#include "server/protocols/state/dealer.h"

namespace thinwire {

class StoredTrials {
 public:
  // FOLDER is the server's state folder. FILES and DEALER must outlive this object.
  StoredTrials(AdaptiveSpec spec, Files& files, const std::string& folder, Dealer& dealer);

  // Begins RUN, or continues it if the server has RECOVERED its state. Call before any other method.
  // Errors: DataLoss if the file is damaged or belongs to another run; FailedPrecondition if it is
  // missing; errors of the file system.
  absl::Status Start(RunId run, bool recovered);

  // Sets the model. Call it before the first worker has joined this process.
  void Begin(const Partition& partition) { rounds_.Begin(partition); }
  // Adds the tests of a worker. Errors: those of the file system.
  absl::Status Add(const HeartbeatRequest& request);
  // Returns the step of the snapshot to which all processes return now; nullopt: they go on. All
  // workers have finished the steps below FRONTIER; every server has the checkpoint of step KEPT;
  // ANNOUNCED is the step of the next checkpoint. Errors: those of the file system.
  absl::StatusOr<std::optional<Step>> Update(Step frontier, std::optional<Step> kept,
                                             std::optional<Step> announced);

  // Returns the step of the next snapshot; nullopt: none is needed.
  std::optional<Step> snapshot() const { return rounds_.snapshot(); }
  // Returns whether a checkpoint at FRONTIER fits the state: it lies neither in a trial nor after
  // the next snapshot.
  bool MaySave(Step frontier) const;

  // Add the arms in force, and all decisions.
  void FillIn(JoinReply& reply) const;
  void FillIn(StatusReply& reply) const;

 private:
  absl::Status Perform(TrialRounds::Action action);
  // Tells the dealer the first step that no worker may begin. ANNOUNCED: as for Update.
  void SetLimit(std::optional<Step> announced);
  // Reads the state from the file. Errors: as of Start.
  absl::Status Load();
  // Writes the state to the file.
  absl::Status Store();
  void LogDecision() const;

  Files& files_;
  const std::string folder_;
  const std::string path_;
  const std::vector<AdaptiveSpec::Arm> arms_;
  Dealer& dealer_;
  TrialRounds rounds_;
  RunId run_;
  bool returns_ = false;  // until all processes have returned, which ends this object
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PRECISION_STORED_TRIALS_H_
