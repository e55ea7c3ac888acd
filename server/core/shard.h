// Shard: the state machine that decides. Events in, effects out; nothing else goes in and nothing
// else comes out.
//
//   Progress    who is live and how far: next, frontier, waiting reads       (progress.h)
//   Judge       what becomes of a push                                       (judge.h)
//   Accumulator what was accepted and waits to become an update              (accumulator.h)
//   Store       update -> masters, by the optimizer                          (store.h, optimizer/)
//   Publisher   masters -> payloads for readers, once per version and codec  (publisher.h)
//   DeltaPublisher   masters -> what changed, where the job publishes that   (delta_publisher.h)
//
// docs/consistency.md states the rule. Lives on its shard's strand, so it has no lock.
#ifndef THINWIRE_SERVER_CORE_SHARD_H_
#define THINWIRE_SERVER_CORE_SHARD_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "common/byte_chain.h"
#include "common/ids.h"
#include "server/core/delta_publisher.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/rule.h"
#include "server/core/schedule.h"
#include "server/core/updater.h"
#include "server/core/version_log.h"

namespace thinwire {

struct ShardOptions {
  size_t value_count = 0;
  Rule rule;
  Generation generation;
  uint64_t planned_examples = 0;
  Thinning thinning;
  std::optional<PublishOptions> publish;  // none: readers get masters only
  // Holds the arrays with an element per value: masters, slots, sums, published values. Outlives
  // the shard and every reader of its masters.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

class Shard {
 public:
  // OPTIMIZER and SCHEDULE outlive the shard; many shards share them.
  Shard(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // The one entry. Never fails: what the edge let through is an event, and every event has its
  // effects.
  Effects Apply(const Event& event);

  // The parameters at version() in a dense codec; encoded at the first call for this version and
  // codec, then shared. In fp32 they are the masters themselves. REQUIRES: seeded().
  ByteChain Encoded(CodecId codec);

  // What the newest update took of its gradients, for every answer to carry: an index list
  // (common/codec/sparse/index_list.h), empty unless a selection gives the rest back to the
  // workers.
  const ByteChain& taken_list() const;

  // The rest of these REQUIRE that options.publish was set, and seeded().
  // What brings a reader that holds HELD of what is published, or nothing, to the newest.
  DeltaChain Deltas(std::optional<Version> held);
  std::shared_ptr<const VersionLog> log() const;
  std::span<const float> published() const;

  // Every waiting read and whom it waits for, in the workers' order.
  std::vector<Wait> Waits() const;

  std::span<const float> masters() const;
  bool seeded() const;
  bool open() const;
  Version version() const;
  Step frontier() const;
  // The first step that WORKER has not finished. REQUIRES: worker < rule.workers.
  Step next(WorkerId worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SHARD_H_
