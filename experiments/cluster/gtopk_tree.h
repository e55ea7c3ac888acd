// GtopkTree is the exchange of gTop-k in a tree of workers (Shi et al. 2019, arXiv 1901.04359,
// algorithms 3 and 4; experiments/peer_tree.h has the arithmetic).
//
//   1. A worker adds its gradient to its residual and takes out the k values of largest magnitude.
//      With momentum correction, it adds its momentum instead, as a worker of servers does.
//   2. In log2 P rounds, worker w + 2^i sends its k entries to worker w, for each w that is a
//      multiple of 2^(i+1). Worker w keeps the k largest sums.
//   3. Worker 0 sends the result back along the same tree. Every worker applies it, and puts back the
//      values that it selected and whose indices the result lacks.
//
//   time of a step between equal links:  2 log2 P (latency + 8 k bytes / bandwidth)
//
// A message has k entries of 8 bytes (index and fp32). A worker sends the result to one receiver
// after the other, like the blocking sends of the published program. k is the number of values that
// a worker of servers sends with the push density of the step: all values of vectors, and of each
// shard of matrices at least one value. The selection is that of the whole model, as published.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_GTOPK_TREE_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_GTOPK_TREE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "client/encode/momentum_correction.h"
#include "client/encode/push_schedule.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"
#include "common/time/executor.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/links.h"
#include "experiments/cluster/peer_exchange.h"
#include "experiments/peer_tree.h"

namespace thinwire::lab {

// Not thread-safe.
class GtopkTree final : public PeerExchange {
 public:
  // PARTITION has the shards that the model would have with servers. SCHEDULE gives the density of each step.
  // COSTS: a worker encodes all its values once per step,
  // and decodes the entries of each message. Worker w is machine w of NETWORK. QUEUE and NETWORK
  // must outlive the tree. REQUIRES: WORKER_COUNT is a power of two.
  GtopkTree(const Partition& partition, size_t worker_count, client::PushSchedule schedule,
            const CorrectionOptions& correction, const CodecCosts& costs, VirtualTime& queue,
            LinkModel& network, std::function<void(size_t worker)> done);

  void Begin(size_t worker) override;
  void Sum(Step step, Gradients gradients, TaskPool& pool, std::span<float> sum) override;

  size_t SentValues(Step step) const override { return EntryCount(step); }

  // Returns the values that WORKER has not sent yet.
  std::span<const float> residual(size_t worker) const { return residuals_[worker].values(); }

 private:
  struct Worker {
    Step step;
    bool ready = false;       // the gradient of the step is computed and encoded
    size_t received = 0;      // bit i: the message of round i has arrived and is not merged yet
    size_t merged_count = 0;  // messages that are merged
    bool merging = false;
  };

  // Returns the number of entries of a message in STEP.
  size_t EntryCount(Step step) const;
  // Returns the number of rounds in which WORKER receives.
  size_t RoundCount(size_t worker) const;
  void Send(size_t from, size_t to, Step step, Executor::Task delivered);
  // Merges the next message of WORKER if it has arrived. After the last one, sends the result on.
  void MergeNext(size_t worker);
  // WORKER has the result of the whole tree: sends it to the senders of its rounds from ROUND - 1
  // down.
  void Broadcast(size_t worker, size_t round, Step step);
  void Finish(size_t worker);

  size_t vector_value_count_ = 0;
  std::vector<size_t> matrix_shards_;  // their value counts
  const client::PushSchedule schedule_;
  const CodecCosts costs_;
  LinkModel& network_;
  const std::function<void(size_t)> done_;
  Processors processors_;
  std::vector<Worker> workers_;
  std::vector<client::MomentumCorrection> corrections_;
  std::vector<PeerResidual> residuals_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_GTOPK_TREE_H_
