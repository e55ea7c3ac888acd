#include "server/protocols/state/dealer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace thinwire {
namespace {

// Progress is stored about this often.
constexpr absl::Duration kSampleInterval = absl::Milliseconds(100);

uint32_t NumberAfter(const std::vector<Deal>& deals) {
  return deals.empty() ? 1 : deals.back().number() + 1;
}

}  // namespace

Dealer::Dealer(uint32_t workers, absl::Duration lease) : workers_(workers), lease_(lease) {}

void Dealer::Reset(std::vector<Deal> deals) {
  deals_ = std::move(deals);
  proposed_.reset();
}

void Dealer::Replay(const Deal& deal) {
  if (deal.number() >= NumberAfter(deals_)) deals_.push_back(deal);
}

void Dealer::Resume(absl::Time now, bool went_back) {
  if (!went_back) known_at_ = now + lease_;
  stated_.clear();
  if (deals_.empty() || deals_.back().batches().empty() || keeps_batches()) return;
  // The batches of the last deal stay until the next call of Share.
  const Deal& last = deals_.back();
  most_batches_ = *std::ranges::max_element(last.batches());
  batches_.clear();
  for (int i = 0; i < last.members_size(); ++i) {
    batches_[WorkerId{last.members(i)}] = last.batches(i);
  }
}

std::vector<Deal> Dealer::deals() const {
  // The log record of a proposed deal may precede the records that a recovery replays.
  std::vector<Deal> deals = deals_;
  if (proposed_.has_value()) deals.push_back(*proposed_);
  return deals;
}

std::vector<WorkerId> Dealer::members() const {
  std::vector<WorkerId> members;
  if (deals_.empty()) {
    for (uint32_t w = 0; w < workers_; ++w) members.push_back(WorkerId{w});
  } else {
    for (const uint32_t worker : deals_.back().members()) members.push_back(WorkerId{worker});
  }
  return members;
}

const Deal* Dealer::At(Step step) const {
  const auto after = std::ranges::upper_bound(deals_, step.value, {}, &Deal::step);
  if (after != deals_.begin()) return &*(after - 1);
  // A deal that begins an epoch replaces earlier ones.
  return !deals_.empty() && deals_.front().epoch() > 0 ? &deals_.front() : nullptr;
}

uint32_t Dealer::MemberCountAt(Step step) const {
  const Deal* const deal = At(step);
  return deal == nullptr ? workers_ : static_cast<uint32_t>(deal->members_size());
}

uint64_t Dealer::BatchesAt(Step step) const { return BatchesOf(At(step)); }

uint64_t Dealer::batches() const {
  if (grown_batches_ > 0) return grown_batches_;
  return BatchesOf(deals_.empty() ? nullptr : &deals_.back());
}

uint64_t Dealer::BatchesOf(const Deal* deal) const {
  if (deal == nullptr) return uint64_t{workers_} * per_member_;
  if (!deal->batches().empty()) {
    return std::accumulate(deal->batches().begin(), deal->batches().end(), uint64_t{0});
  }
  const uint32_t each = deal->accumulate() > 0 ? deal->accumulate() : per_member_;
  return static_cast<uint64_t>(deal->members_size()) * each;
}

void Dealer::KeepBatches(uint32_t per_member, uint32_t most) {
  per_member_ = per_member;
  most_per_member_ = most;
}

void Dealer::Share(uint32_t most, std::map<WorkerId, uint32_t> batches) {
  most_batches_ = most;
  batches_ = std::move(batches);
}

uint32_t Dealer::BatchesOf(WorkerId worker) const {
  if (deals_.empty() || deals_.back().batches().empty()) return 0;
  const auto& members = deals_.back().members();
  const auto member = std::ranges::lower_bound(members, worker.value);
  if (member == members.end() || *member != worker.value) return 0;
  return deals_.back().batches(static_cast<int>(member - members.begin()));
}

void Dealer::SplitBatches(uint64_t batches, Deal& deal) const {
  const auto members = static_cast<uint64_t>(deal.members_size());
  const auto limited = [this](uint64_t count) {
    return static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, most_per_member_));
  };
  const uint32_t least = limited(batches / members);
  const uint32_t most = limited((batches + members - 1) / members);
  deal.set_accumulate(most);
  if (least == most) return;
  for (uint64_t i = 0; i < members; ++i) deal.add_batches(i < batches % members ? most : least);
}

bool Dealer::ChangesBatches(const Deal& deal) const {
  // Deals of the same members and the same sum are equal.
  if (keeps_batches())
    return BatchesOf(&deal) != BatchesOf(deals_.empty() ? nullptr : &deals_.back());
  const Deal& last = deals_.empty() ? Deal::default_instance() : deals_.back();
  return !std::ranges::equal(deal.batches(), last.batches());
}

void Dealer::SetBatches(Deal& deal) const {
  if (keeps_batches()) return SplitBatches(batches(), deal);
  if (most_batches_ == 0) return;
  for (const uint32_t worker : deal.members()) {
    const auto named = batches_.find(WorkerId{worker});
    deal.add_batches(named != batches_.end() ? named->second : most_batches_);
  }
}

void Dealer::Advance(Step largest_next, absl::Time now) {
  const size_t count = progress_.size();
  if (count >= 2 && now - progress_[count - 2].time < kSampleInterval) progress_.pop_back();
  progress_.push_back({now, largest_next.value});
  while (progress_.size() >= 2 && progress_[1].time <= now - kAhead) progress_.pop_front();
}

void Dealer::Heard(WorkerId worker, uint64_t dealt_until) {
  if (!known_at_.has_value()) return;  // the Dealer knows what it has told the workers
  stated_.insert(worker);
  dealt_until_ = std::max(dealt_until_, std::min(dealt_until, kLastDealStep));
}

std::vector<WorkerId> Dealer::NewMembers(std::vector<WorkerId> live,
                                         const std::vector<WorkerId>& returning) {
  const std::vector<WorkerId> last_members = members();
  std::erase_if(replaced_, [&last_members](const auto& replaced) {
    return !std::ranges::binary_search(last_members, replaced.first);
  });
  std::erase_if(live, [this](WorkerId worker) { return replaced_.contains(worker); });
  // A process that replaces a lost one within its lease, and begins at the next step, changes
  // nothing.
  live.insert(live.end(), returning.begin(), returning.end());
  std::ranges::sort(live);
  const auto repeated = std::ranges::unique(live);
  live.erase(repeated.begin(), repeated.end());
  return live;
}

bool Dealer::AwaitsStatements(const std::vector<WorkerId>& new_members, absl::Time now) {
  if (!known_at_.has_value()) return false;
  const bool all = std::ranges::all_of(
      new_members, [this](WorkerId worker) { return stated_.contains(worker); });
  if (!all && now < *known_at_) return true;
  known_at_.reset();
  return false;
}

std::optional<Deal> Dealer::Propose(const std::vector<WorkerId>& live,
                                    const std::vector<WorkerId>& returning,
                                    const std::function<Step(WorkerId)>& next, absl::Time now) {
  const std::vector<WorkerId> new_members = NewMembers(live, returning);
  if (new_members != new_members_) {
    new_members_ = new_members;
    same_since_ = now;
  }
  if (now - same_since_ < kSettleTime) return std::nullopt;
  const std::vector<WorkerId> last_members = members();
  if (AwaitsStatements(new_members, now) || proposed_.has_value()) return std::nullopt;
  if (new_members.empty()) return std::nullopt;
  Deal deal;
  for (const WorkerId worker : new_members) deal.add_members(worker.value);
  SetBatches(deal);
  if (new_members == last_members && !ChangesBatches(deal)) return std::nullopt;
  Promise();
  deal.set_step(dealt_until_);
  deal.set_number(NumberAfter(deals_));
  // No plan has the steps before a deal that begins an epoch. A lead that continues from an older
  // checkpoint may not know that a worker has finished them.
  const uint64_t least = !deals_.empty() && deals_.front().epoch() > 0 ? deals_.front().step() : 0;
  for (const WorkerId worker : last_members) {
    if (std::ranges::binary_search(new_members, worker)) continue;
    Deal::Departed& departed = *deal.add_departed();
    departed.set_worker(worker.value);
    const auto replaced = replaced_.find(worker);
    const Step unfinished = replaced != replaced_.end() ? replaced->second : next(worker);
    departed.set_next(std::max(unfinished.value, least));
  }
  proposed_ = deal;
  return deal;
}

void Dealer::Commit() {
  if (!proposed_.has_value()) return;
  deals_.push_back(*std::exchange(proposed_, std::nullopt));
  if (BatchesOf(&deals_.back()) >= grown_batches_) grown_batches_ = 0;
}

void Dealer::Drop(uint64_t epoch, Step begin, Step limit, const std::vector<WorkerId>& live,
                  const std::function<Step(WorkerId)>& next) {
  const auto after = std::ranges::lower_bound(deals_, begin.value, {}, &Deal::step);
  // One deal need not be replaced by another.
  if (epoch == 0 || begin > limit || after - deals_.begin() < 2 || proposed_.has_value()) return;
  if (epoch <= deals_.front().epoch()) return;
  const auto unfinished = [&](WorkerId worker) { return next(worker) < begin; };
  const auto lost_earlier = [&](const auto& replaced) { return replaced.second < begin; };
  if (std::ranges::any_of(live, unfinished) || std::ranges::any_of(members(), unfinished) ||
      std::ranges::any_of(replaced_, lost_earlier)) {
    return;
  }
  Deal first = *(after - 1);
  first.set_step(begin.value);
  first.set_epoch(epoch);
  first.clear_departed();
  deals_.erase(deals_.begin(), after - 1);
  deals_.front() = std::move(first);
}

Step Dealer::StepAhead() const {
  if (progress_.empty()) return Step{kLeastSteps};
  const uint64_t step = progress_.back().step;
  return Step{step + std::max(kLeastSteps, step - std::min(step, progress_.front().step))};
}

void Dealer::Promise() {
  // The step of a proposed deal stays one that no worker begins.
  if (proposed_.has_value() || progress_.empty()) return;
  const uint64_t last = deals_.empty() ? 0 : deals_.back().step();
  const uint64_t limit = limit_.has_value() ? limit_->value : kLastDealStep;
  dealt_until_ =
      std::max({dealt_until_, last, std::min({StepAhead().value, limit, kLastDealStep})});
}

void Dealer::FillIn(JoinReply& reply) {
  Promise();
  reply.mutable_deals()->Assign(deals_.begin(), deals_.end());
  reply.set_dealt_until(dealt_until_);
}

void Dealer::FillIn(uint32_t known, HeartbeatReply& reply) {
  Promise();
  const auto first = std::ranges::upper_bound(deals_, known, {}, &Deal::number);
  reply.mutable_deals()->Assign(first, deals_.end());
  reply.set_dealt_until(dealt_until_);
}

}  // namespace thinwire
