#include "server/protocols/deals/growth_lead.h"

#include <algorithm>
#include <limits>

#include "common/base/divide_up.h"
#include "proto/deal_check.h"

namespace thinwire {
namespace {

uint32_t Clamped(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void GrowthLead::Begin(const TaskSpec& task, uint64_t planned_examples) {
  if (begun()) return;
  task_ = task;
  epoch_examples_ = planned_examples / task.epochs;
  GrowthSpec spec = spec_;
  if (spec.largest_batch == 0) spec.largest_batch = epoch_examples_ / 10;
  spec.largest_batch = std::min(spec.largest_batch, epoch_examples_);
  growth_.emplace(spec);
  dealer_.KeepBatches(task_.accumulate, MostBatches());
}

uint32_t GrowthLead::MostBatches() const {
  return std::max(kMostAccumulated / task_.batch_size, task_.accumulate);
}

bool GrowthLead::Update(const NoiseEstimate& noise, Step largest_next, const Rule& rule) {
  const uint64_t member_count = dealer_.MemberCountAt(largest_next);
  const uint64_t batches = dealer_.BatchesAt(largest_next);
  accumulate_ = Clamped(DivideUp(batches, member_count));
  batch_ =
      std::min<uint64_t>(member_count, rule.quorum) * batches * task_.batch_size / member_count;
  wished_workers_ = accumulate_ > 1 ? std::min(Clamped(batches), rule.max_workers) : 0;
  // A batch that is announced or too large for a worker is not judged.
  const bool fits = DivideUp(2 * batches, member_count) <= MostBatches();
  if (dealer_.batches() != batches || !fits || !growth_->Doubles(noise, batch_)) return false;
  dealer_.Grow(2 * batches);
  return true;
}

void GrowthLead::FillIn(StatusReply& reply) const {
  reply.set_batch(Clamped(batch_));
  reply.set_accumulate(accumulate_);
  reply.set_epoch_examples(Clamped(epoch_examples_));
  reply.set_wished_workers(wished_workers_);
}

}  // namespace thinwire
