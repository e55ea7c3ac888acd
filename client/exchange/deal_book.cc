#include "client/exchange/deal_book.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "proto/deal_check.h"

namespace thinwire::client {

absl::Status DealBook::Append(const google::protobuf::RepeatedPtrField<Deal>& added,
                              std::vector<Deal>& deals) {
  for (const Deal& deal : added) {
    const uint32_t known = deals.empty() ? 0 : deals.back().number();
    if (deal.number() > 0 && deal.number() <= known) continue;
    const uint64_t first_step = deals.empty() ? 0 : deals.back().step();
    RETURN_IF_ERROR(CheckDeal(deal, kMostDealtWorkers, first_step));
    // A missing deal follows with the next heartbeat.
    if (deal.epoch() == 0 && deal.number() != known + 1) continue;
    if (deal.epoch() > 0) deals.clear();
    deals.push_back(deal);
  }
  return absl::OkStatus();
}

absl::Status DealBook::Reset(const JoinReply& reply) {
  std::vector<Deal> deals;
  RETURN_IF_ERROR(Append(reply.deals(), deals));
  absl::MutexLock lock(&mu_);
  deals_ = std::move(deals);
  waits_end_ = false;
  dealt_until_ = reply.dealt_until();
  return absl::OkStatus();
}

absl::Status DealBook::Add(const JoinReply& reply) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Append(reply.deals(), deals_));
  dealt_until_ = std::max(dealt_until_, reply.dealt_until());
  return absl::OkStatus();
}

void DealBook::FillIn(HeartbeatRequest& request) const {
  absl::MutexLock lock(&mu_);
  request.set_deal_count(deals_.empty() ? 0 : deals_.back().number());
  request.set_dealt_until(dealt_until_);
  request.set_data_epoch(epoch_);
  request.set_data_epoch_begin(epoch_begin_.value);
}

absl::Status DealBook::Add(const HeartbeatReply& reply) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Append(reply.deals(), deals_));
  dealt_until_ = std::max(dealt_until_, reply.dealt_until());
  retired_ = retired_ || reply.retired();
  return absl::OkStatus();
}

bool DealBook::Wait(Step step, absl::Duration timeout) const {
  const auto ended = [this, step]()
                         ABSL_SHARED_LOCKS_REQUIRED(mu_) { return waits_end_ || Knows(step); };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&ended), timeout);
  return Knows(step);
}

void DealBook::EndWaits() {
  absl::MutexLock lock(&mu_);
  waits_end_ = true;
}

std::vector<Deal> DealBook::DealsAfter(size_t known) const {
  absl::MutexLock lock(&mu_);
  const auto first = std::ranges::upper_bound(deals_, known, {}, &Deal::number);
  return {first, deals_.end()};
}

void DealBook::BeginEpoch(uint64_t epoch, Step begin) {
  absl::MutexLock lock(&mu_);
  epoch_ = epoch;
  epoch_begin_ = begin;
}

bool DealBook::retired() const {
  absl::MutexLock lock(&mu_);
  return retired_;
}

}  // namespace thinwire::client
