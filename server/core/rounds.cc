#include "server/core/rounds.h"

#include <algorithm>

namespace thinwire {

void Rounds::Close(uint32_t quorum, bool last_departed, Effects& effects) {
  WorkerTable& workers = parts_.workers;
  Accumulator& accumulator = parts_.accumulator;
  accumulator.FoldInOrder([&workers](WorkerId worker) { return workers.MayPushFrontier(worker); });
  // Every live worker has finished the rounds below `finished`. If no worker is live any more, the
  // rounds that any worker has finished close, so that the result does not depend on the order in
  // which the workers depart.
  std::optional<Step> finished =
      last_departed ? std::optional(workers.LargestNext()) : workers.SmallestLiveNext();
  if (full_until_.has_value()) {
    // A worker that becomes live meanwhile does not reopen a round.
    full_until_ = std::max(*full_until_, finished.value_or(Step{}));
    if (!sums_.has_value()) return;  // never set in a relayed shard
    finished = full_until_;
  }
  for (;;) {
    const bool all = finished.has_value() && *finished > workers.frontier();
    const bool has_gradients = accumulator.count() > 0;
    if (!all && !(has_gradients && accumulator.count() >= quorum)) return;
    // A relayed shard reports also a round without gradients, because the other job waits for it.
    if (options_.relayed || (has_gradients && needs_sums() && !sums_.has_value())) {
      const Step next = StepsAfter(workers.frontier(), 1);
      return Fill(std::max(next, finished.value_or(next)), effects);
    }
    if (has_gradients) {
      CloseOne(quorum, effects);
    } else {
      // A worker may request a step that is any number of rounds ahead. Therefore one iteration of
      // this loop closes all consecutive rounds without gradients; one iteration per round could
      // take too long.
      effects.rounds.push_back({Step{finished->value - 1}, {}});
      if (options_.holds_average) parts_.store.Clear();
      workers.MoveFrontier(*finished);
    }
  }
}

void Rounds::CloseOne(uint32_t quorum, Effects& effects) {
  WorkerTable& workers = parts_.workers;
  Accumulator& accumulator = parts_.accumulator;
  effects.rounds.push_back({workers.frontier(), accumulator.Contributors()});
  // The closing round accepts no more pushes. Gradients that were held to be folded in the order of
  // the worker numbers can therefore all be folded now.
  accumulator.FoldInOrder([](WorkerId) { return false; });
  if (MeasuresNoise(quorum)) noise_.Close(accumulator);
  if (options_.shares_tensor) {
    parts_.store.ApplyMeasured(accumulator, *sums_);
  } else {
    parts_.store.Apply(accumulator,
                       needs_sums() ? ClipFactor(options_.clip_norm, sums_->update) : 1);
  }
  sums_.reset();
  full_until_.reset();
  workers.MoveFrontier(StepsAfter(workers.frontier(), 1));
}

void Rounds::Fill(Step until, Effects& effects) {
  full_until_ = until;
  parts_.accumulator.FoldInOrder([](WorkerId) { return false; });
  // The norm of the sum has the same bits for every order of arrival; that of a gradient that is
  // still encoded is added up in another order.
  parts_.accumulator.FoldSingle();
  SquareSums sums;
  if (options_.shares_tensor) {
    sums = parts_.store.Measure(parts_.accumulator);
  } else if (!options_.relayed) {
    sums.update = parts_.accumulator.SquaredNormOfMean();
  }
  effects.full_round = FullRound{parts_.workers.frontier(), sums};
}

void Rounds::Take(const SumEvent& event) {
  if (full() && event.step == parts_.workers.frontier()) sums_ = event.sums;
}

void Rounds::Take(const UpdateEvent& event, Effects& effects) {
  if (!options_.relayed || !full() || event.step != parts_.workers.frontier()) return;
  if (*full_until_ > event.step) {
    effects.rounds.push_back({event.step, parts_.accumulator.Contributors()});
  }
  parts_.store.Replace(event.payload);
  parts_.accumulator.Clear();
  parts_.workers.MoveFrontier(*full_until_);
  full_until_.reset();
  updated_ = true;
}

bool Rounds::HasMasters(Effects& effects) {
  if (!options_.relayed || updated_) return true;
  if (!full()) Fill(parts_.workers.frontier(), effects);
  return false;
}

}  // namespace thinwire
