// PeerExchange is the second half of a step of peer-to-peer training: when a worker has computed its
// gradient, the workers send messages to each other until every worker has the sum of all
// gradients.
//
//   Ring       ring.h          a ring all-reduce
//   GtopkTree  gtopk_tree.h    the gTop-k tree
//
// An exchange separates times from values. Begin() runs the messages in virtual time; they carry no
// values. Sum() computes the values once for all workers, because all workers receive the same
// bits.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_PEER_EXCHANGE_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_PEER_EXCHANGE_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/task_pool.h"

namespace thinwire::lab {

// The gradients of all workers, by worker number.
using Gradients = std::span<const std::vector<float>>;

class PeerExchange {
 public:
  virtual ~PeerExchange() = default;

  // WORKER has computed the gradient of its next step. Later, the exchange calls the function DONE
  // that its constructor received, with WORKER. REQUIRES: DONE was called for the worker's step
  // before.
  virtual void Begin(size_t worker) = 0;
  // Sets SUM to the sum of GRADIENTS as all workers receive it in STEP. Computes on POOL. REQUIRES:
  // called at most once for every step, in their order.
  virtual void Sum(Step step, Gradients gradients, TaskPool& pool, std::span<float> sum) = 0;
  // Returns the number of values of its gradient that a worker sends in STEP.
  virtual size_t SentValues(Step step) const = 0;
};

// Processors encode and decode in virtual time. Each worker has one processor, which does its work
// in the order of the calls. Not thread-safe.
class Processors {
 public:
  // QUEUE must outlive this object.
  Processors(size_t worker_count, VirtualTime& queue) : free_(worker_count), queue_(queue) {}

  // Calls THEN when the processor of WORKER has done WORK. If the processor is free and WORK is 0,
  // calls THEN at once.
  void Run(size_t worker, absl::Duration work, Executor::Task then) {
    const absl::Duration begin = std::max(free_[worker], queue_.elapsed());
    free_[worker] = begin + work;
    if (free_[worker] == queue_.elapsed()) return then();
    queue_.At(free_[worker], std::move(then));
  }

 private:
  std::vector<absl::Duration> free_;  // when the processor has done all work
  VirtualTime& queue_;
};

// Calls RUN with 0, 1, ..., COUNT - 1 on the threads of POOL and waits for all calls.
void ForEach(TaskPool& pool, size_t count, const std::function<void(size_t)>& run);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_PEER_EXCHANGE_H_
