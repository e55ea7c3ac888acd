#include "client/exchange/deal_book.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "proto/deal_check.h"

namespace thinwire::client {

absl::Status DealBook::Append(size_t first, const google::protobuf::RepeatedPtrField<Deal>& added,
                              std::vector<Deal>& deals) {
  for (size_t i = 0; i < static_cast<size_t>(added.size()); ++i) {
    if (first + i != deals.size()) continue;
    const Deal& deal = added[static_cast<int>(i)];
    const uint64_t first_step = deals.empty() ? 0 : deals.back().step();
    RETURN_IF_ERROR(CheckDeal(deal, kMostDealtWorkers, first_step));
    deals.push_back(deal);
  }
  return absl::OkStatus();
}

absl::Status DealBook::Reset(const JoinReply& reply) {
  std::vector<Deal> deals;
  RETURN_IF_ERROR(Append(0, reply.deals(), deals));
  absl::MutexLock lock(&mu_);
  deals_ = std::move(deals);
  dealt_until_ = reply.dealt_until();
  return absl::OkStatus();
}

absl::Status DealBook::Add(const JoinReply& reply) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Append(0, reply.deals(), deals_));
  dealt_until_ = std::max(dealt_until_, reply.dealt_until());
  return absl::OkStatus();
}

void DealBook::FillIn(HeartbeatRequest& request) const {
  absl::MutexLock lock(&mu_);
  request.set_deal_count(static_cast<uint32_t>(deals_.size()));
  request.set_dealt_until(dealt_until_);
}

absl::Status DealBook::Add(const HeartbeatRequest& request, const HeartbeatReply& reply) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Append(request.deal_count(), reply.deals(), deals_));
  dealt_until_ = std::max(dealt_until_, reply.dealt_until());
  retired_ = retired_ || reply.retired();
  return absl::OkStatus();
}

bool DealBook::Wait(Step step, absl::Duration timeout) const {
  const auto known = [this, step]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return Knows(step); };
  absl::ReaderMutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&known), timeout);
}

std::vector<Deal> DealBook::DealsAfter(size_t known_count) const {
  absl::MutexLock lock(&mu_);
  if (known_count >= deals_.size()) return {};
  return {deals_.begin() + static_cast<ptrdiff_t>(known_count), deals_.end()};
}

bool DealBook::retired() const {
  absl::MutexLock lock(&mu_);
  return retired_;
}

}  // namespace thinwire::client
