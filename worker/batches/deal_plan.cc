#include "worker/batches/deal_plan.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/divide_up.h"

namespace thinwire {
namespace {

// Members take turns, one example each, until they have their SIZES. Returns the number of examples
// that are taken before example number J of MEMBER.
uint64_t Before(const std::vector<uint64_t>& sizes, size_t member, uint64_t j) {
  uint64_t before = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    before += std::min(sizes[i], i < member ? j + 1 : j);
  }
  return before;
}

}  // namespace

ExamplePool::ExamplePool(uint64_t epoch, uint64_t example_count) {
  Add({.epoch = epoch, .position = 0}, example_count);
}

void ExamplePool::Add(DealtExample first, uint64_t count) {
  if (count == 0) return;
  const bool adjacent = !runs_.empty() && runs_.back().first.epoch == first.epoch &&
                        runs_.back().first.position + runs_.back().count == first.position;
  if (adjacent) {
    runs_.back().count += count;
  } else {
    runs_.push_back({.first = first, .count = count, .before = size_});
  }
  size_ += count;
}

DealtExample ExamplePool::at(uint64_t i) const {
  const auto after = std::ranges::upper_bound(runs_, i, {}, &Run::before);
  const Run& run = *(after - 1);
  return {.epoch = run.first.epoch,
          .position = static_cast<uint32_t>(run.first.position + (i - run.before))};
}

ExamplePool ExamplePool::Without(uint64_t count, const std::vector<DealtExample>& returned) const {
  ExamplePool pool;
  auto next = returned.begin();
  for (const Run& run : runs_) {
    const uint64_t skipped =
        std::clamp<uint64_t>(count, run.before, run.before + run.count) - run.before;
    const uint64_t end = run.first.position + run.count;
    uint64_t at = run.first.position + skipped;
    // A returned example lies before this run, between its examples that are left, or behind it.
    // Examples that are left and returned ones are different, so that only the first case occurs
    // within [at, end).
    while (next != returned.end() &&
           *next < DealtExample{run.first.epoch, static_cast<uint32_t>(at)}) {
      pool.Add(*next++, 1);
    }
    if (at < end) pool.Add({run.first.epoch, static_cast<uint32_t>(at)}, end - at);
  }
  for (; next != returned.end(); ++next) pool.Add(*next, 1);
  return pool;
}

DealPlan::DealPlan(uint64_t example_count, uint32_t batch_size, uint32_t workers,
                   uint32_t batch_count, uint64_t epochs)
    : example_count_(example_count), batch_size_(batch_size), epochs_(epochs) {
  CHECK_GT(example_count, 0u);
  CHECK_LE(example_count, std::numeric_limits<uint32_t>::max());
  CHECK_GT(batch_size_, 0u);
  CHECK_GT(workers, 0u);
  CHECK_GT(batch_count, 0u);
  Dealt first;
  for (uint32_t w = 0; w < workers; ++w) first.members.push_back(WorkerId{w});
  first.sizes.assign(workers, uint64_t{batch_size} * batch_count);
  first_ = Sized(std::move(first));
  deals_.push_back(first_);
}

DealPlan::Dealt DealPlan::Sized(Dealt dealt) const {
  dealt.step_size = std::accumulate(dealt.sizes.begin(), dealt.sizes.end(), uint64_t{0});
  dealt.full_steps = DivideUp(example_count_, dealt.step_size);
  return dealt;
}

const DealPlan::Dealt& DealPlan::DealtAt(Step step) const {
  const auto after = std::ranges::upper_bound(deals_, step.value, {}, &Dealt::begin);
  return after == deals_.begin() ? deals_.front() : *(after - 1);
}

DealPlan::Place DealPlan::PlaceOf(const Dealt& dealt, Step step) const {
  if (step.value < dealt.full_begin) {
    return {dealt.full_epoch - 1, dealt.rest, step.value - dealt.begin};
  }
  const uint64_t passed = step.value - dealt.full_begin;
  const uint64_t epoch = dealt.full_epoch + passed / dealt.full_steps;
  return {epoch, ExamplePool(epoch, example_count_), passed % dealt.full_steps};
}

DealPlan::Dealt DealPlan::MembersOf(const Deal& deal) const {
  Dealt dealt;
  dealt.begin = deal.step();
  for (const uint32_t worker : deal.members()) dealt.members.push_back(WorkerId{worker});
  for (const uint32_t batches : deal.batches()) {
    dealt.sizes.push_back(uint64_t{batch_size_} * batches);
  }
  if (deal.batches().empty()) {
    dealt.sizes.assign(dealt.members.size(), deal.accumulate() == 0
                                                 ? first_.sizes.front()
                                                 : uint64_t{batch_size_} * deal.accumulate());
  }
  return Sized(std::move(dealt));
}

void DealPlan::BeginWith(const Deal& deal) {
  Dealt first = MembersOf(deal);
  first.full_begin = deal.step();
  first.full_epoch = deal.epoch();
  deals_ = {std::move(first)};
  absences_.clear();
  replaced_count_ = deal.number();
}

void DealPlan::Add(const Deal& deal) {
  if (deal.epoch() > 0) return BeginWith(deal);
  const Dealt& last = deals_.back();
  const Place place = PlaceOf(last, Step{deal.step()});
  // The members have taken the first positions of the pool in the steps before.
  const uint64_t taken_count = std::min(place.pool.size(), place.step * last.step_size);
  const std::vector<DealtExample> returned =
      place.epoch < epochs_ ? TakeBack(deal) : std::vector<DealtExample>();
  Dealt next = MembersOf(deal);
  next.rest = place.pool.Without(taken_count, returned);
  next.full_begin = next.begin + DivideUp(next.rest.size(), next.step_size);
  next.full_epoch = place.epoch + 1;
  deals_.push_back(std::move(next));
}

std::vector<DealtExample> DealPlan::TakeBack(const Deal& deal) {
  std::vector<DealtExample> returned;
  for (const Deal::Departed& departed : deal.departed()) {
    const WorkerId worker{departed.worker()};
    std::vector<Absence>& absences = absences_[worker];
    // Examples from before the end of an earlier absence are returned already.
    const uint64_t end = absences.empty() ? 0 : absences.back().end;
    const Absence absence = {.next = std::max(departed.next(), end), .end = deal.step()};
    if (absence.next >= absence.end) continue;
    for (uint64_t step = absence.next; step < absence.end; ++step) {
      const std::vector<DealtExample> batch = Batch(worker, Step{step});
      returned.insert(returned.end(), batch.begin(), batch.end());
    }
    absences.push_back(absence);
  }
  std::ranges::sort(returned);
  return returned;
}

bool DealPlan::IsAbsent(WorkerId worker, Step step) const {
  const auto found = absences_.find(worker);
  if (found == absences_.end()) return false;
  return std::ranges::any_of(found->second, [step](const Absence& absence) {
    return absence.next <= step.value && step.value < absence.end;
  });
}

void DealPlan::ForgetDeals() {
  deals_ = {first_};
  replaced_count_ = 0;
  absences_.clear();
}

uint64_t DealPlan::epoch(Step step) const {
  const Dealt& dealt = DealtAt(step);
  if (step.value < dealt.full_begin) return dealt.full_epoch - 1;
  return dealt.full_epoch + (step.value - dealt.full_begin) / dealt.full_steps;
}

Step DealPlan::EpochBegin(uint64_t epoch) const {
  // The last deal behind whose rest the epoch begins. The first one has no rest.
  auto dealt = deals_.rbegin();
  while (epoch < dealt->full_epoch && std::next(dealt) != deals_.rend()) ++dealt;
  if (epoch < dealt->full_epoch) return Step{dealt->begin};
  return Step{dealt->full_begin + (epoch - dealt->full_epoch) * dealt->full_steps};
}

std::vector<DealtExample> DealPlan::Batch(WorkerId worker, Step step) const {
  const Dealt& dealt = DealtAt(step);
  if (step.value < dealt.begin) return {};
  const auto member = std::ranges::lower_bound(dealt.members, worker);
  if (member == dealt.members.end() || *member != worker || IsAbsent(worker, step)) return {};
  const Place place = PlaceOf(dealt, step);
  const auto number = static_cast<size_t>(member - dealt.members.begin());
  std::vector<DealtExample> batch;
  for (uint64_t j = 0; j < dealt.sizes[number]; ++j) {
    const uint64_t position = place.step * dealt.step_size + Before(dealt.sizes, number, j);
    if (position >= place.pool.size()) break;
    batch.push_back(place.pool.at(position));
  }
  return batch;
}

}  // namespace thinwire
