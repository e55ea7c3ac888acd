// Rounds closes the rounds of a shard, in the modes with rounds (Fold::kRound). The gradients of a
// closed round are one update.
//
//   open --(quorum, or all live workers have finished)--> closed: the frontier moves on
//
//   with clip_norm, or if the shard shares a tensor whose norms the optimizer reads:
//   open --(the same, and there are gradients)--> full --SumEvent--> closed
//
//   if another job makes the updates (relayed):
//   open --(quorum, or all live workers have finished)--> full --UpdateEvent--> closed
//
// A full round accepts no more pushes. It has all its gradients; its update waits for the sums of
// squares over all shards of the model, or of the tensor, or for the new values of the shard.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_ROUNDS_H_
#define THINWIRE_SERVER_CORE_ROUNDS_H_

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/gradient_noise.h"
#include "server/core/update/store.h"
#include "server/core/worker_table.h"

namespace thinwire {

class Rounds {
 public:
  struct Options {
    // The largest norm of the averaged gradient over all shards of the model; 0: no limit.
    double clip_norm = 0;
    bool shares_tensor = false;  // ShardOptions::shares_tensor
    // A round without gradients is an update, too: it sets the masters to 0
    // (Optimizer::holds_average).
    bool holds_average = false;
    bool relayed = false;  // ShardOptions::relayed
  };
  // The parts of the shard that a closed round changes. They must outlive this object.
  struct Parts {
    WorkerTable& workers;
    Accumulator& accumulator;
    Store& store;
  };

  Rounds(const Parts& parts, const Options& options) : parts_(parts), options_(options) {}

  // Closes the rounds that are complete, and adds them to EFFECTS. QUORUM: Rule::quorum.
  // LAST_DEPARTED: the event ended the liveness of the last live worker. REQUIRES: store.seeded().
  void Close(uint32_t quorum, bool last_departed, Effects& effects);
  // Keeps the sums of EVENT for the next Close() if the frontier's round is full.
  void Take(const SumEvent& event);
  // Closes the frontier's round with the values of EVENT if it is full, and adds it to EFFECTS.
  void Take(const UpdateEvent& event, Effects& effects);
  // Returns whether the shard may open. A relayed shard first becomes full, without a gradient, and
  // waits for the values of an UpdateEvent.
  bool HasMasters(Effects& effects);
  // Measures the noise of GRADIENT, a push of the frontier's round, if it is time for it.
  void Measure(const Gradient& gradient, uint32_t quorum) {
    if (MeasuresNoise(quorum)) noise_.Add(gradient);
  }

  // Returns whether the frontier's round waits for its SumEvent or UpdateEvent.
  bool full() const { return full_until_.has_value(); }
  // Returns whether a relayed shard has had an UpdateEvent.
  bool updated() const { return updated_; }
  // Returns the frontier, or that after the SumEvent or UpdateEvent of a full round.
  Step next_frontier() const { return full_until_.value_or(parts_.workers.frontier()); }
  const NoiseEstimate& noise() const { return noise_.estimate(); }

 private:
  // A measurement decodes the payloads of a round once more, so one round in this many is measured.
  static constexpr uint64_t kNoiseInterval = 16;

  bool needs_sums() const { return options_.clip_norm > 0 || options_.shares_tensor; }
  // A round with a quorum of 1 shows no noise. The job that makes the updates measures its own.
  bool MeasuresNoise(uint32_t quorum) const {
    return quorum > 1 && !options_.relayed && parts_.workers.frontier().value % kNoiseInterval == 0;
  }
  void CloseOne(uint32_t quorum, Effects& effects);
  // Ends the folding of the frontier's round, which is then full. UNTIL: the frontier after its
  // SumEvent or UpdateEvent.
  void Fill(Step until, Effects& effects);

  const Parts parts_;
  const Options options_;
  std::optional<Step> full_until_;  // set while the frontier's round is full
  std::optional<SquareSums> sums_;  // set between the SumEvent and the end of its round
  bool updated_ = false;
  GradientNoise noise_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_ROUNDS_H_
