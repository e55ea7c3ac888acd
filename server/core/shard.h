// Shard is the state machine of one parameter shard: it takes events and returns effects. It has no
// other input or output.
//
//   worker_table.h               which workers are live, and how far: next, frontier, waiting reads
//   judge.h                      the verdict of a push
//   update/accumulator.h         accepted gradients that are not yet part of an update
//   update/store.h, optimizer/   update -> masters
//   publish/publisher.h          masters -> payloads for readers, once per version and codec
//   publish/delta_publisher.h    masters -> deltas, if the job publishes them
//
// docs/consistency.md states the rule. Lives on its shard's strand and needs no lock.
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
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/publish/version_log.h"
#include "server/core/update/updater.h"

namespace thinwire {

struct ShardOptions {
  size_t value_count = 0;
  Rule rule;
  Generation generation;
  uint64_t planned_examples = 0;
  SparseUpdateSpec sparse_updates;
  std::optional<PublishOptions> publish;  // none: readers get the masters only
  // Holds the arrays with an element per value: masters, slots, sums, published values. Outlives
  // the shard and every reader of its masters.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

class Shard {
 public:
  // OPTIMIZER and SCHEDULE outlive the shard. Shards share them.
  Shard(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Applies EVENT and returns its effects. Never fails, because server/edge validates events.
  Effects Apply(const Event& event);

  // Returns the parameters at version() in a dense codec. Calls for the same version and codec
  // share one encoding. In fp32 the payload shares the memory of the masters. REQUIRES: seeded().
  ByteChain Encoded(CodecId codec);

  // Returns the indices that the newest update selected (gTop-k), as an index list
  // (common/codec/sparse/index_list.h). Every answer with parameters carries this list. Empty
  // unless unselected values return to the workers.
  const ByteChain& selected_list() const;

  // The next three methods REQUIRE options.publish and seeded().

  // Returns the deltas that bring a reader of published version HELD (nullopt: a reader without
  // values) to the newest one.
  DeltaChain Deltas(std::optional<Version> held);
  std::shared_ptr<const VersionLog> log() const;
  std::span<const float> published() const;

  // Returns every waiting read with the reason why it waits, in the workers' order.
  std::vector<BlockedRead> BlockedReads() const;

  std::span<const float> masters() const;
  bool seeded() const;
  bool open() const;
  Version version() const;
  Step frontier() const;
  // Returns the first step that WORKER has not finished. REQUIRES: worker < rule.workers.
  Step next(WorkerId worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SHARD_H_
