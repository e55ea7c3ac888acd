// Shard is the state machine of one parameter shard. Its only inputs are events; its only outputs
// are effects and the parameters.
//
//   worker_table.h               live workers, the `next` of each worker, frontier, waiting reads
//   judge.h                      decides the verdict of a push
//   staleness/                   policies for gradients that were computed from old parameters
//   update/accumulator.h         sums accepted gradients that are not yet part of an update
//   update/gradient_noise.h      estimates the noise of the gradients
//   rounds.h                     closes the rounds of the modes sync and backup
//   update/store.h, optimizer/   apply an update to the masters
//   publish/publisher.h          encodes masters for readers, once per version and codec
//   publish/delta_publisher.h    encodes deltas for readers, if the job publishes deltas
//
// docs/consistency.md defines the behavior. Lives on its shard's strand and needs no lock.
#ifndef THINWIRE_SERVER_CORE_SHARD_H_
#define THINWIRE_SERVER_CORE_SHARD_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/spec/rule.h"
#include "common/spec/staleness_spec.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/publish/version_log.h"
#include "server/core/shard_snapshot.h"
#include "server/core/update/gradient_noise.h"
#include "server/core/update/updater.h"

namespace thinwire {

struct ShardOptions {
  size_t value_count = 0;
  // The value counts of the shard's tensors, for an optimizer that needs whole tensors; none: all
  // values are one tensor.
  std::vector<size_t> tensor_sizes;
  Rule rule;
  Generation generation;
  uint64_t planned_examples = 0;
  SparseUpdateSpec sparse_updates;
  StalenessSpec staleness;                // REQUIRES: with kDcasgd, `publish` is set
  std::optional<PublishOptions> publish;  // nullopt: the shard publishes no deltas
  bool checkpointed = false;              // Save() is called; only ShardBytes() reads this
  // A full round waits for its SumEvent if the norm of the averaged gradient of the model is limited
  // (clip_norm above 0), or if the optimizer reads norms of a tensor of which other shards have
  // parts. REQUIRES: the shard then has only rules with Fold::kRound; not both.
  double clip_norm = 0;
  bool shares_tensor = false;
  // Another job makes the updates: every full round waits for its UpdateEvent, and the shard opens
  // with the first one. REQUIRES: the shard has only rules with Fold::kRound; clip_norm is 0, and
  // shares_tensor is false.
  bool relayed = false;
  // An earlier process has had the updates of the steps before this one: Restore() moves the frontier
  // to it.
  Step relayed_until;
  // Allocates the arrays with one element per parameter: masters, slots, sums, published
  // parameters. Must outlive the shard and every reader of its masters.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

// What a full round of a relayed shard asks for.
struct RelayedPart {
  bool first = false;      // the first values of the job that makes the updates; no gradient
  uint64_t weight = 0;     // of the round's gradients; 0: none
  double rate_factor = 1;  // Accumulator::rate_factor()
};

class Shard {
 public:
  // OPTIMIZER and SCHEDULE must outlive the shard. Several shards may use the same objects.
  Shard(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Applies EVENT and returns its effects. Never fails, because server/shards validates events.
  Effects Apply(const Event& event);

  // Returns the parameters of version(), encoded with a dense codec. Calls with the same version
  // and codec return the same bytes. An fp32 payload shares the memory of the masters. REQUIRES:
  // seeded().
  ByteChain Encoded(CodecId codec);

  // Returns the indices that gTop-k selected in the newest update, as an index list
  // (common/codec/sparse/index_list.h). Every answer to a read carries this list. Returns an empty
  // chain unless unselected values return to the workers.
  const ByteChain& selected_list() const;

  // Deltas(), log() and published() REQUIRE: options.publish is set, and the shard is seeded.

  // Returns the deltas that bring a reader from published version HELD to the newest published
  // version. HELD is nullopt if the reader has no parameters.
  DeltaChain Deltas(std::optional<Version> held);
  std::shared_ptr<const VersionLog> log() const;
  std::span<const float> published() const;

  // Returns whether the whole state is in the arrays of a snapshot: the shard is seeded, and no
  // accepted gradient waits for its update.
  bool CanSave() const;
  // Returns the current state, which later events do not change. Shares the memory of the masters
  // and copies all other arrays. REQUIRES: CanSave().
  ShardSnapshot Save();
  // Continues from SNAPSHOT: the same events then have the same effects as in the saved shard. With
  // kDcasgd, gradients of parameters before SNAPSHOT are not compensated.
  // Errors: InvalidArgument if SNAPSHOT contradicts itself or the options; the shard must not be
  // used then. REQUIRES: Apply() was not called; the saved shard had the same options, except
  // the generation and the memory resource.
  absl::Status Restore(const ShardSnapshot& snapshot);

  // Returns every waiting read with the reason for its wait, ordered by worker number.
  std::vector<BlockedRead> BlockedReads() const;

  std::span<const float> masters() const;
  // Returns the moving average of the masters, or the masters if the job has none.
  std::span<const float> averages() const;
  bool seeded() const;
  bool open() const;
  Version version() const;
  // Returns whether the last update left a master or an optimizer slot at the magnitude of the
  // largest finite float, and the number of such updates.
  bool saturated() const;
  uint64_t saturated_updates() const;
  // Returns the noise of the gradients in modes sync and backup, since the shard was created. No
  // snapshot contains it.
  const NoiseEstimate& noise() const;
  Step frontier() const;
  // Returns whether the round of the frontier is full and waits for its SumEvent or UpdateEvent.
  bool full() const;
  // Writes the mean of the round's gradients to VALUES, zeros if it has none, or the masters if the
  // part is `first`. REQUIRES: full(); options.relayed; VALUES has value_count values.
  RelayedPart CopyRelayed(std::span<float> values) const;
  // Return the rule in force, and the rule that replaces it at a later step, with this step.
  const Rule& rule() const;
  const std::optional<RuleEvent>& next_rule() const;
  // Returns the first step that WORKER has not finished. REQUIRES: worker < rule.max_workers.
  Step next(WorkerId worker) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SHARD_H_
