// Ring is the ring all-reduce of Patarasuk and Yuan 2009: P workers in a ring add gradients of n
// values, which are divided into P chunks.
//
//   reduce-scatter   P - 1 messages per worker. A worker sends its own chunk to its successor, adds
//                    each received chunk to its own values and sends the sum on. Then it has one
//                    complete chunk.
//   all-gather       P - 1 messages per worker. A worker sends its complete chunk and passes the
//                    other complete chunks on.
//
//   time of a step between equal links:  2 (P - 1) (latency + bytes of a chunk / bandwidth)
//
// With a lossy codec, a worker encodes every chunk that it sends in reduce-scatter, and the
// receiver decodes it before it adds: 8-bit and 16-bit sums are rounded at every hop, as in a
// library that adds in that format. A complete chunk is encoded once; all workers, also the one
// that encoded it, go on with the decoded values, so all have the same bits. There is no error
// feedback: an error of a partial sum belongs to no worker (docs/decisions/0107).
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_RING_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_RING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/links.h"
#include "experiments/cluster/peer_exchange.h"

namespace thinwire::lab {

// The values of chunk number CHUNK are those from `first` on.
struct RingChunk {
  size_t first = 0;
  size_t count = 0;
};
RingChunk RingChunkOf(size_t chunk, size_t value_count, size_t worker_count);

// Sets the values of chunk number CHUNK in SUM to the sum of GRADIENTS, as a ring with CODEC adds
// them. REQUIRES: CODEC is dense.
void SumRingChunk(const Codec& codec, size_t chunk, Gradients gradients, std::span<float> sum);

// Not thread-safe.
class Ring final : public PeerExchange {
 public:
  // Worker w is machine w of NETWORK and sends to worker w + 1. QUEUE and NETWORK must outlive the
  // ring. REQUIRES: CODEC is dense; value_count >= worker_count >= 1.
  Ring(size_t value_count, size_t worker_count, std::unique_ptr<const Codec> codec,
       const CodecCosts& costs, VirtualTime& queue, LinkModel& network,
       std::function<void(size_t worker)> done);

  void Begin(size_t worker) override;
  void Sum(Step step, Gradients gradients, TaskPool& pool, std::span<float> sum) override;
  size_t SentValues(Step /*step*/) const override { return value_count_; }

 private:
  // A chunk on its way. `hop` counts the messages, from 1. With hop P - 1 the chunk is complete,
  // and with hop 2 (P - 1) it ends its way.
  struct Message {
    Step step;
    size_t chunk = 0;
    size_t hop = 0;
  };
  struct Worker {
    Step step;
    bool ready = false;          // the gradient of `step` is computed
    std::vector<Message> early;  // messages that arrived before that
    size_t complete_count = 0;   // complete chunks of `step`
  };

  void Send(size_t worker, Message message);
  void Receive(size_t worker, Message message);
  void Complete(size_t worker);

  const size_t value_count_;
  const std::unique_ptr<const Codec> codec_;
  const CodecCosts costs_;
  LinkModel& network_;
  const std::function<void(size_t)> done_;
  Processors processors_;
  std::vector<Worker> workers_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_RING_H_
