// TrialRounds decides, at the lead of a job with push: adaptive, which arm (a codec or the rule
// fastest) the workers use and when all processes return to a snapshot
// (docs/adaptive_precision.md). It is a pure state machine.
//
//   event                                       next
//   the last test of a trial without times      the same trial again, from the snapshot
//   the last test of a trial, an arm is left    the trial of the next arm, from the snapshot
//   the last test of the last trial             the chosen arm: goes on if its trial was the last
//                                               one, otherwise from the snapshot
//   the snapshot of the next decision exists    the trial of the first arm, from this snapshot
//
// The tests of a trial come from another worker if the evaluator is lost. One that joins in the last
// part of a trial has measured no time; the last time that an evaluator measured then counts.
//
// With adaptive_per_layer, a round after the first one changes the arm of one kind of tensors, and
// its trials leave the arms of the other kinds as they are.
//
// The arm of the last decision is tried last, because it is chosen most often. Every change of the
// arm is a return to a snapshot, so an arm belongs to a generation of the servers.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_PRECISION_TRIAL_ROUNDS_H_
#define THINWIRE_SERVER_PROTOCOLS_PRECISION_TRIAL_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/model/tensor_kind.h"
#include "common/spec/push_spec.h"
#include "proto/precision.pb.h"
#include "server/protocols/precision/precision_choice.h"

namespace thinwire {

class TrialRounds {
 public:
  enum class Action {
    kNone,
    kStore,   // the caller stores state()
    kReturn,  // the caller stores state(), then all processes return to the snapshot of begin()
  };

  // Begins with the trial of the first arm at step 0. REQUIRES: SPEC is valid.
  explicit TrialRounds(AdaptiveSpec spec);

  // Returns the state, which the caller stores and passes to Restore of the next object.
  const PrecisionState& state() const { return state_; }
  // Errors: DataLoss if STATE names an arm that the job does not have.
  absl::Status Restore(PrecisionState state);

  // Sets the model. Call it before any test is added; later calls change nothing.
  void Begin(const Partition& partition);

  // Returns the step of the snapshot from which the steps with arms() begin.
  Step begin() const { return Step{state_.step()}; }
  KindArms arms() const;
  bool tries() const { return state_.tries(); }
  // Returns the step of the next snapshot; nullopt: none is needed.
  std::optional<Step> snapshot() const;
  // Returns the first step that no worker may begin yet; nullopt: there is none. All workers begin
  // the step of the snapshot, because they save their state before it.
  std::optional<Step> limit() const;

  // Adds a test of the present trial. Ignores tests that it knows, tests of other steps, and tests
  // with impossible values.
  Action Add(const PrecisionTest& test);
  // All workers have finished the steps below FRONTIER, and every server has the checkpoint of step
  // KEPT.
  Action Advance(Step frontier, Step kept);

 private:
  // REQUIRES: the last test has been added.
  Action EndTrial();
  Action Decide();
  // Ends the round: the run goes on with ARMS up to NEXT.
  Action GoOn(const KindArms& arms, Step next);
  // Returns the arms of the last decision; those of a run without trials if there was none.
  KindArms Chosen() const;
  // Returns the arm that the present round may replace; nullopt: this is the first round.
  std::optional<uint32_t> CurrentArm() const;
  // Returns the arm that is tried next; nullopt: all have been tried.
  std::optional<uint32_t> NextArm() const;

  // Returns the kind of tensors whose arm the present round chooses; nullopt: all kinds.
  std::optional<TensorKind> kind() const;

  const AdaptiveSpec spec_;
  std::vector<TensorKind> alone_;  // KindsChosenAlone
  PrecisionState state_;
  std::vector<PrecisionTest> tests_;  // of the present trial
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PRECISION_TRIAL_ROUNDS_H_
