#include "server/protocols/deals/growth_lead.h"

#include <algorithm>
#include <limits>

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
}

bool GrowthLead::Update(const NoiseEstimate& noise, Step largest_next, const Rule& rule) {
  const uint32_t announced = std::max(dealer_.accumulate(), task_.accumulate);
  accumulate_ = std::max(dealer_.AccumulateAt(largest_next), task_.accumulate);
  const uint32_t member_count = dealer_.MemberCountAt(largest_next);
  batch_ = uint64_t{std::min(member_count, rule.quorum)} * task_.batch_size * accumulate_;
  wished_workers_ = 0;
  if (accumulate_ > 1) {
    wished_workers_ = std::min(Clamped(uint64_t{member_count} * accumulate_), rule.max_workers);
  }
  // A batch that is announced or too large for a worker is not judged.
  const bool fits = uint64_t{2} * accumulate_ * task_.batch_size <= kMostAccumulated;
  if (announced != accumulate_ || !fits || !growth_->Doubles(noise, batch_)) return false;
  dealer_.Grow(2 * accumulate_);
  return true;
}

void GrowthLead::FillIn(StatusReply& reply) const {
  reply.set_batch(Clamped(batch_));
  reply.set_accumulate(accumulate_);
  reply.set_epoch_examples(Clamped(epoch_examples_));
  reply.set_wished_workers(wished_workers_);
}

}  // namespace thinwire
