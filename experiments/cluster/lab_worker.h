// LabWorker is a worker in virtual time. It is built from the client's own parts and acts as
// client/exchange does.
//
//   parameters of the step have arrived  ->  decode  ->  compute  ->  encode  ->  pushes leave
//                                                        (all local steps)
//   verdicts: late values return to the residual; the next step is StepVerdicts::next()
//
// Decoding, the gradient and encoding are really computed on a thread of the TaskPool as soon as
// the parameters have arrived; the virtual times come from CodecCosts and ComputeTimes. All pushes
// of a step leave together: virtual time does not overlap sending with the backward pass. Not
// thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LAB_WORKER_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LAB_WORKER_H_

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/encode/encoding_error.h"
#include "client/encode/gradient_clip.h"
#include "client/encode/local_steps.h"
#include "client/encode/push_encoder.h"
#include "client/encode/residual_file.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/send_queue.h"
#include "client/exchange/status_report.h"
#include "client/exchange/step_verdicts.h"
#include "client/options/client_options.h"
#include "client/replica/replica.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/memory/byte_chain.h"
#include "common/partition.h"
#include "common/spec/task_spec.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/step_pushes.h"
#include "experiments/cluster/task_pool.h"
#include "experiments/cluster/value_ages.h"
#include "proto/control.pb.h"
#include "proto/frame.h"

namespace thinwire::lab {

class LabWorker {
 public:
  // The objects that all workers share. They must outlive the workers.
  struct Shared {
    const Partition& partition;
    const CodecCosts& costs;
    const ComputeTimes& times;
    const TaskSpec& task;
    const Step& end;  // workers stop before this step, which a deal may change
    // The deals of the run so far, which the tasks follow; null: none.
    const std::shared_ptr<const std::vector<Deal>>& deals;
    // Worker 0, the evaluator, measures its encoding errors from this step on; nullopt: never.
    std::optional<Step> measured_from;
    VirtualTime& queue;
    TaskPool& pool;
    std::function<void(WorkerId, ServerId, ByteChain frame)> send;
    // Called when a worker begins a step that it computes for TIME, and when its gradient is ready.
    std::function<void(WorkerId, absl::Duration time)> began;
    std::function<void(const GradientResult&)> computed;
    // Called when a worker has the verdicts of its last step.
    std::function<void(WorkerId)> finished;
    // Called with an error that ends the run.
    std::function<void(const absl::Status&)> failed;
  };

  // DELAY is added to the computing time of every step. Errors: InvalidArgument if OPTIONS describe
  // no valid codec.
  static absl::StatusOr<std::unique_ptr<LabWorker>> Make(const Shared& shared,
                                                         const ClientOptions& options,
                                                         absl::Duration delay);
  LabWorker(const LabWorker&) = delete;
  LabWorker& operator=(const LabWorker&) = delete;

  // The three functions below REQUIRE that Start() was not called.

  // Encodes the gradients of shard s with CODECS[s]. Errors: those of PushEncoder::UseCodecs.
  absl::Status UseCodecs(const std::vector<CodecSpec>& codecs) {
    return encoder_->UseCodecs({codecs.begin(), codecs.end()});
  }
  // Begins with STEP and the residuals SAVED. Errors: those of PushEncoder::Restore.
  absl::Status Restore(Step step, client::SavedResiduals saved) {
    step_ = step;
    return encoder_->Restore(std::move(saved));
  }
  // Requests the parameters of the first step.
  void Start() { ReadAll(step_); }

  // Returns a copy of the residuals. REQUIRES: the worker has the verdicts of all pushes.
  absl::StatusOr<client::SavedResiduals> Save() const;
  // A frame of SERVER has arrived.
  void Receive(ServerId server, const ByteChain& bytes);

  // Returns the first step that the worker has not finished.
  Step next() const { return step_; }
  const ValueAges& value_ages() const { return ages_; }
  const client::EncodingError& encoding_error() const { return encoder_->error(); }

 private:
  LabWorker(const Shared& shared, const ClientOptions& options, absl::Duration delay,
            std::unique_ptr<client::PushEncoder> encoder);

  absl::Status OnVerdict(client::SendQueue& link, const VerdictEntry& verdict);
  void OnParameters(client::SendQueue& link, const ParametersEntry& entry);
  absl::Status FinishStep();
  void ReadAll(Step step);
  void Compute();
  void OnComputed();
  void SendPushes(std::vector<PushEntry> pushes);
  void SendQueued();

  // The two functions below run on a thread of the pool while the worker computes.
  absl::StatusOr<StepPushes> ComputeStep(LearningTask& task);
  absl::Status MergeArrived();

  const Shared shared_;
  const ClientOptions options_;
  const absl::Duration delay_;
  std::vector<client::SendQueue> links_;  // by server number
  client::Replica replica_;
  const std::unique_ptr<client::PushEncoder> encoder_;
  client::StatusReport report_;
  client::GtopkReturns returns_;
  client::GradientClip clip_;
  std::optional<client::LocalSteps> local_;
  client::StepVerdicts verdicts_;
  ValueAges ages_;
  Step step_;
  bool judged_ = true;                    // all verdicts of the step before step_ have arrived
  size_t missing_count_ = 0;              // shards whose parameters for step_ have not arrived
  std::vector<ParametersEntry> arrived_;  // not merged yet
  std::future<absl::StatusOr<StepPushes>> computed_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LAB_WORKER_H_
