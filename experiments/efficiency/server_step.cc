#include "experiments/efficiency/server_step.h"

#include <algorithm>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/virtual_time.h"

namespace thinwire::lab {
namespace {

constexpr uint64_t kSteps = 2;
constexpr double kForwardPart = 1.0 / 3;

class Simulation {
 public:
  Simulation(const ServerStep& step, const Partition& partition)
      : step_(step),
        partition_(partition),
        network_(std::vector<LinkSpec>(step.workers, step.link), queue_),
        workers_(step.workers),
        push_counts_(partition.shard_count(), 0) {}

  double Run() {
    for (uint32_t worker = 0; worker < step_.workers; ++worker) Backward(worker);
    while (!queue_.empty()) queue_.RunNext();
    return absl::ToDoubleSeconds(begins_[kSteps] - begins_[1]) / (kSteps - 1);
  }

 private:
  struct Worker {
    uint64_t step = 0;
    std::vector<bool> arrived;  // by shard
    uint32_t arrived_count = 0;
    uint32_t forward_count = 0;  // shards whose part of the forward pass has begun
    bool computing = false;
  };

  absl::Duration Compute(double part) const { return absl::Seconds(step_.compute_seconds * part); }
  uint32_t shard_count() const { return partition_.shard_count(); }

  // Begins the backward pass of WORKER, and schedules all pushes of the step.
  void Backward(uint32_t worker) {
    Worker& state = workers_[worker];
    begins_[state.step] = std::max(begins_[state.step], queue_.elapsed());
    if (state.step++ == kSteps) return;
    state.arrived.assign(shard_count(), false);
    state.arrived_count = 0;
    state.forward_count = 0;
    state.computing = false;
    const absl::Duration backward = Compute(1 - kForwardPart);
    const absl::Duration encode = absl::Seconds(step_.encode_seconds / shard_count());
    absl::Duration encoded = queue_.elapsed();
    for (uint32_t shard = 0; shard < shard_count(); ++shard) {
      const absl::Duration ready =
          queue_.elapsed() +
          (step_.overlap ? backward * ((shard + 1.0) / shard_count()) : backward);
      encoded = std::max(encoded, ready) + encode;
      queue_.At(encoded, [this, worker, shard] { Push(worker, shard); });
    }
  }

  void Push(uint32_t worker, uint32_t shard) {
    const uint32_t server = partition_.server(ShardId{shard}).value;
    network_.Send(worker, server, step_.push_bytes, [this, server, shard] {
      if (++push_counts_[shard] < step_.workers) return;
      push_counts_[shard] = 0;
      for (uint32_t reader = 0; reader < step_.workers; ++reader) {
        network_.Send(server, reader, step_.pull_bytes,
                      [this, reader, shard] { Arrive(reader, shard); });
      }
    });
  }

  void Arrive(uint32_t worker, uint32_t shard) {
    Worker& state = workers_[worker];
    state.arrived[shard] = true;
    ++state.arrived_count;
    Forward(worker);
  }

  // Begins the next part of the forward pass if its parameters are there. The forward pass needs
  // the shards in the reverse order of the backward pass.
  void Forward(uint32_t worker) {
    Worker& state = workers_[worker];
    if (state.computing) return;
    if (state.forward_count == shard_count()) return Backward(worker);
    const uint32_t next = shard_count() - 1 - state.forward_count;
    const bool ready = step_.overlap ? state.arrived[next] : state.arrived_count == shard_count();
    // The backward pass is over, because the last shard has been pushed.
    if (!ready) return;
    ++state.forward_count;
    state.computing = true;
    queue_.After(Compute(kForwardPart / shard_count()), [this, worker] {
      workers_[worker].computing = false;
      Forward(worker);
    });
  }

  const ServerStep step_;
  const Partition& partition_;
  VirtualTime queue_;
  LinkModel network_;
  std::vector<Worker> workers_;
  std::vector<uint32_t> push_counts_;  // by shard
  // The times at which all workers have begun the backward pass of a step.
  std::vector<absl::Duration> begins_ = std::vector<absl::Duration>(kSteps + 1);
};

}  // namespace

double ServerStepSeconds(const ServerStep& step, const Partition& partition) {
  return Simulation(step, partition).Run();
}

}  // namespace thinwire::lab
