// VirtualWorker: a worker process in virtual time: a real client core and a trainer that computes
// gradients in no time of the machine and some virtual time.
#ifndef THINWIRE_SIM_WORKER_H_
#define THINWIRE_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/core/client_core.h"
#include "client/exchange/step_listener.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "common/time/virtual_time.h"

namespace thinwire::sim {

// What all workers train. Each tensor is one row-major array.
struct VirtualTask {
  std::vector<TensorShape> tensors;
  std::vector<std::vector<float>> initial;
  Step last;           // workers train up to this step
  bool stays = false;  // a worker that has trained stays, and follows the servers if they go back
  // Writes the gradient of WORKER's STEP at PARAMETERS, one array per tensor, to GRADIENT, whose
  // values are 0. Returns the number of examples.
  std::function<uint32_t(WorkerId worker, Step step,
                         const std::vector<std::span<const float>>& parameters,
                         std::vector<std::vector<float>>& gradient)>
      gradient;
  // Returns the virtual time that this takes.
  std::function<absl::Duration(WorkerId worker, Step step)> time;
};

class VirtualWorker final : private client::StepListener {
 public:
  enum class State { kJoining, kTraining, kLeaving, kFinished, kFailed };

  // TASK, PARTITION and TIME must outlive the worker.
  VirtualWorker(const VirtualTask& task, const Partition& partition, ClientOptions options,
                std::unique_ptr<Transport> transport, VirtualTime& time);
  ~VirtualWorker() override;

  void Start() { Join(); }

  State state() const { return state_; }
  // Returns whether the worker has trained, and left unless it stays.
  bool finished() const {
    return state_ == State::kFinished ||
           (task_.stays && state_ == State::kTraining && step_ >= task_.last);
  }
  Step step() const { return step_; }
  // Returns why the process failed. REQUIRES: state() is kFailed.
  const absl::Status& failure() const { return failure_; }
  // Returns what the worker waits for, as text.
  std::string waiting() const { return core_->report().waiting(); }
  WorkerCounters counters() const { return core_->report().counters(); }

 private:
  void OnShardExpected(ShardId shard) override { missing_[shard.value] = true; }
  void OnShardArrived(ShardId shard) override;
  void OnStepEncoded() override {}
  void OnStepJudged(Step next) override;
  void OnFailure(absl::Status failure) override;
  void OnRollback(Generation generation) override;

  void Join();
  // Runs the next step, or leaves, if everything that it needs has arrived.
  void Continue();
  // Calls Continue in a task of its own, because the exchange calls the listener.
  void ContinueLater();
  void Compute();
  void Leave();
  void Fail(absl::Status failure);

  const VirtualTask& task_;
  const Partition& partition_;
  const ClientOptions options_;
  const std::unique_ptr<Transport> transport_;
  VirtualTime& time_;
  const std::shared_ptr<Executor> loop_;
  std::vector<bool> missing_;  // by shard: its parameters are awaited
  std::vector<std::vector<float>> gradient_;
  State state_ = State::kJoining;
  Step step_;
  bool computing_ = false;  // from the beginning of a step until all its verdicts
  uint64_t life_ = 0;       // number of rollbacks; a computation of an earlier life is dropped
  absl::Status failure_;
  std::unique_ptr<client::ClientCore> core_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_WORKER_H_
