// ReplayWorker computes and encodes the gradients of one recorded worker anew, with the code of the
// client.
//
//   Read (every shard) -> Start: gradient and payloads on the pool -> Push, Judged (every shard)
//
// A worker reads no shard for a step before its push of the step before was judged there, so it has
// at most one step at a time. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_REPLAY_WORKER_H_
#define THINWIRE_EXPERIMENTS_REPLAY_REPLAY_WORKER_H_

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/gradient_clip.h"
#include "client/encode/local_steps.h"
#include "client/encode/push_encoder.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/local_steps_spec.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/task_pool.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire::lab {

class ReplayWorker {
 public:
  // PARTITION must outlive this object. Errors: those of PushEncoder::Make.
  static absl::StatusOr<std::unique_ptr<ReplayWorker>> Make(const Partition& partition,
                                                            const ClientOptions& options,
                                                            const LocalStepsSpec& local);

  // Sets the parameters of SHARD for STEP to VALUES. Returns true if the parameters of all shards
  // are set.
  bool Read(ShardId shard, Step step, std::span<const float> values);
  // Begins to compute the step whose parameters are set on POOL, which must outlive the
  // computation.
  void Start(TaskPool& pool);
  // Waits for the computation and returns the loss of the step.
  absl::StatusOr<GradientResult> Wait();

  // Returns whether the pushes of STEP are encoded. STEP is the step of a push that was not judged
  // yet.
  bool HasPushes(Step step) const { return encoded_ == step; }
  // Returns the encoded push of SHARD, whose computed_version is not set.
  const PushEntry& Push(ShardId shard) const { return pushes_[shard.value]; }
  // The server has judged the push of SHARD. Errors: those of the encoder.
  absl::Status Judged(ShardId shard, Verdict verdict);

 private:
  ReplayWorker(const Partition& partition, const ClientOptions& options,
               const LocalStepsSpec& local, std::unique_ptr<client::PushEncoder> encoder);
  // The work of Start. Runs on a thread of the pool.
  absl::StatusOr<GradientResult> Compute(LearningTask& task);

  const Partition& partition_;
  const WorkerId worker_;
  const std::unique_ptr<client::PushEncoder> encoder_;
  client::GradientClip clip_;
  std::optional<client::LocalSteps> local_;
  std::vector<std::vector<float>> parameters_;  // by tensor
  std::vector<PushEntry> pushes_;               // by shard
  Step reading_;                 // the step whose parameters are set or computed with
  uint32_t missing_count_;       // shards whose parameters are not set for it
  std::optional<Step> encoded_;  // the step of pushes_
  std::future<absl::StatusOr<GradientResult>> result_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_REPLAY_WORKER_H_
