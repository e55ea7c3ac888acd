// VirtualWorker: a worker process in virtual time: a real client core and a trainer that computes
// gradients in no time of the machine and some virtual time.
#ifndef THINWIRE_SIM_WORKER_H_
#define THINWIRE_SIM_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/core/client_core.h"
#include "client/encode/streaming_steps.h"
#include "client/exchange/step_listener.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "common/spec/local_steps_spec.h"
#include "common/time/virtual_time.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "sim/cluster_observer.h"
#include "sim/mutant.h"
#include "worker/batches/sampler.h"
#include "worker/trainer/trial_tests.h"

namespace thinwire::sim {

struct VirtualStep {
  WorkerId worker;
  Step step;
  // One row-major array per tensor. A computation may change them if it restores them.
  std::span<const std::span<float>> parameters;
  std::span<const uint32_t> examples;  // the numbers of its examples, if the task has data
  std::span<const Deal> deals;         // of the steps so far
};

// Local steps whose fragments are exchanged while they go on (docs/streaming.md).
struct VirtualLocalSteps {
  struct Plan {
    uint32_t examples = 0;     // of the whole step; 0: it has no local steps
    uint32_t local_steps = 0;  // of this step
    bool whole = false;        // all fragments are exchanged at the end
  };

  LocalStepsSpec spec;
  std::function<Plan(const VirtualStep&)> plan;
  // As `time` and `gradient` of VirtualTask, for the local steps of a step from FIRST to before END.
  // They change the parameters of the step, which are the worker's own.
  std::function<absl::Duration(const VirtualStep&, uint32_t first, uint32_t end)> time;
  std::function<absl::Status(const VirtualStep&)> train;
};

// The model and the data of all workers.
struct VirtualTask {
  std::vector<TensorShape> tensors;
  std::vector<std::vector<float>> initial;  // one row-major array per tensor
  // The data that the lead deals among the workers. nullopt: workers have no data and train up to
  // the step `last`.
  std::optional<SamplerOptions> data;
  Step last;
  uint64_t planned_examples = 0;  // as in ClientSettings; 0: those of `data`
  uint64_t planned_steps = 0;
  std::optional<JobConfig> config;  // that the workers state; nullopt: none
  bool stays = false;  // a worker that has trained stays, and follows the servers if they go back
  // By shard: the codec that the rule `fastest` of the job chooses. Empty: the worker measures the
  // codecs on its machine, whose time is not virtual.
  std::vector<CodecSpec> fastest;
  // Of a job with push: adaptive: the steps of a trial, and a function that returns the accuracy of
  // the parameters of a step, which worker 0 calls.
  uint64_t trial_steps = 0;
  std::function<absl::StatusOr<double>(const VirtualStep&)> test;
  // Called when a step begins. Returns the virtual time that its gradient takes. The parameters stay
  // valid until `gradient` is called, so a thread may compute it meanwhile.
  std::function<absl::Duration(const VirtualStep&)> time;
  // Called after this time. Sets GRADIENT to the gradient, one array per tensor; the values are 0
  // before. Returns the number of examples. Errors end the worker.
  std::function<absl::StatusOr<uint32_t>(const VirtualStep&,
                                         std::vector<std::vector<float>>& gradient)>
      gradient;
  // Replaces `time` and `gradient`, except for a step without examples. The observer does not learn
  // the gradients of such a worker: the ledger, which adds up gradients, cannot check them.
  std::optional<VirtualLocalSteps> streaming;
};

// The examples that the processes of a worker have pushed, by step. A step that a process takes
// again replaces the earlier one.
using PushedExamples = std::map<Step, std::vector<uint32_t>>;

class VirtualWorker final : private client::StepListener {
 public:
  enum class State { kJoining, kTraining, kLeaving, kFinished, kFailed };

  // Receives whether the process has joined again after a rollback, and its first step.
  using Joined = std::function<void(bool came_back, Step first)>;

  // Adds what it pushes to PUSHED, and tells OBSERVER what it does. JOINED is called when it has
  // joined, before the observer sees its residuals, and FAILED when it fails. TASK, PARTITION, TIME,
  // PUSHED and OBSERVER must outlive the worker.
  VirtualWorker(const VirtualTask& task, const Partition& partition, ClientOptions options,
                std::unique_ptr<Transport> transport, ExecutorFactory& time, PushedExamples& pushed,
                ClusterObserver& observer, Mutant mutant, Joined joined,
                std::function<void()> failed);
  ~VirtualWorker() override;

  void Start() { Join(); }
  // From now on, the worker leaves when it has trained, although its task says that it stays.
  void LeaveWhenTrained();
  // Tells the ledger which residuals a next process may restore now.
  void KeepResiduals();

  State state() const { return state_; }
  // Returns whether the worker has trained, and left unless it stays, or was removed before it could
  // join.
  bool finished() const {
    return state_ == State::kFinished || (stays_ && over_) || absl::IsOutOfRange(failure_);
  }
  // Returns whether the process is about to end.
  bool ended() const { return state_ == State::kFinished || state_ == State::kFailed; }
  Step step() const { return step_; }
  Incarnation incarnation() const {
    return core_ == nullptr ? Incarnation{} : core_->joined_run().incarnation;
  }
  // Returns why the process failed. REQUIRES: state() is kFailed.
  const absl::Status& failure() const { return failure_; }
  // Returns the first step of the trial of push: adaptive in which the worker is; nullopt: none.
  std::optional<Step> trial() const;
  // Returns whether the process failed because another one has its number.
  bool lost_number() const;
  // Returns what the worker waits for, as text.
  std::string waiting() const { return core_ == nullptr ? "" : core_->parts().report.waiting(); }

 private:
  void OnShardExpected(ShardId shard) override { missing_[shard.value] = true; }
  bool OnShardChanging(ShardId shard) override;
  void OnShardArrived(ShardId shard) override;
  void OnShardEncoded(ShardId shard) override { used_[shard.value] = false; }
  void OnUnjudged(size_t count) override;
  void OnStepEncoded() override { pushed_until_ = step_ + 1; }
  void OnNextStep(Step next) override;
  void OnFailure(absl::Status failure) override;
  void OnRollback(Generation generation) override;

  void Join();
  // Returns whether the job has no such step. REQUIRES: IsDealt().
  bool IsOver() const {
    return sampler_.has_value() ? sampler_->epoch(step_) >= task_.data->epochs
                                : step_ >= task_.last;
  }
  // Returns whether the deals of the step are known. If not, asks the lead and continues later.
  bool IsDealt();
  // Encodes with the codecs that the rule `fastest` chooses.
  absl::Status UseFastest();
  // If the trial is tested before the step, worker 0 tests it. Returns whether the worker goes on: its
  // parameters have arrived.
  bool TestTrial();
  // Runs the next step, or leaves, if everything that it needs has arrived.
  void Continue();
  // Calls Continue in a task of its own, because the exchange calls the listener.
  void ContinueLater();
  void Compute();
  // Pushes PLAN's examples of the current step in fragments.
  void BeginStreaming(const VirtualLocalSteps::Plan& plan);
  // Makes the moves of the step up to the next wait.
  void Stream();
  // If everything that was pushed must have its verdict before the step, waits until it has. Returns
  // whether the worker goes on.
  bool Settle();
  // Returns whether the worker saves its residuals before the current step.
  bool SavesResiduals() const;
  // Tell the observer what the worker's process has now.
  void TellBegin();
  void TellState(bool with_replica);
  VirtualStep StepNow() const;
  // Saves the residuals before the current step, if it is time.
  void SaveResiduals();
  // Restores the newest saved residuals, whatever their step is.
  void RestoreNewest();
  void Leave();
  void Fail(absl::Status failure);
  void Tell(const std::string& text) const;

  const VirtualTask& task_;
  const Partition& partition_;
  const ClientOptions options_;
  const std::unique_ptr<Transport> transport_;
  ExecutorFactory& time_;
  const std::shared_ptr<Executor> loop_;
  PushedExamples& pushed_;
  ClusterObserver& observer_;
  const Mutant mutant_;
  const Joined joined_;
  const std::function<void()> failed_;
  bool stays_;
  std::optional<Sampler> sampler_;
  std::optional<TrialTests> trial_tests_;
  std::optional<Step> tested_;  // the step of the newest test since the Join
  bool asks_ = false;           // the lead was asked for deals
  std::vector<bool> missing_;   // by shard: its parameters are awaited
  std::vector<bool> used_;      // by shard: the current step uses its parameters
  size_t unjudged_count_ = 0;   // steps with pushes that lack verdicts
  std::vector<std::span<float>> parameters_;
  std::vector<uint32_t> examples_;  // of the current step
  std::vector<Deal> deals_;
  State state_ = State::kJoining;
  Step step_;
  bool over_ = false;       // the worker has trained
  bool computing_ = false;  // from the beginning of a step until the next may begin
  // Of the current step with streaming local steps.
  std::vector<std::vector<ShardId>> fragments_;
  std::optional<client::StreamingSteps> streaming_;
  std::deque<client::FragmentMove> moves_;
  uint32_t local_steps_ = 0;          // that are done
  bool training_ = false;             // local steps are under way
  std::optional<Step> next_;          // the next step, if it may begin when the moves are made
  std::optional<Step> pushed_until_;  // the step after the newest push since the Join
  bool saves_ = false;                // before the next step, because the process has just joined
  uint64_t life_ = 0;  // number of rollbacks; a computation of an earlier life is dropped
  absl::Status failure_;
  std::unique_ptr<client::ClientCore> core_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_WORKER_H_
