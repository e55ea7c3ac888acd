#include "proto/deal_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

absl::Status CheckWorkers(const std::string& field, const std::vector<uint32_t>& workers,
                          uint32_t worker_count) {
  for (size_t i = 0; i < workers.size(); ++i) {
    const uint32_t least = i == 0 ? 0 : workers[i - 1] + 1;
    if (workers[i] >= least && workers[i] < worker_count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("deal: ", field, ": not ascending or out of range (expected ", least, " to ",
                     worker_count - 1, ", got ", workers[i], ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDeal(const Deal& deal, uint32_t worker_count, uint64_t first_step) {
  if (deal.step() < first_step || deal.step() > kLastDealStep) {
    return absl::InvalidArgumentError(absl::StrCat("deal: step: out of range (expected ",
                                                   first_step, " to ", kLastDealStep, ", got ",
                                                   deal.step(), ")"));
  }
  if (deal.number() == 0) {
    return absl::InvalidArgumentError("deal: number: missing (expected at least 1, got 0)");
  }
  if (deal.epoch() > 0 && !deal.departed().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "deal: departed: not valid with an epoch (expected none, got ", deal.departed_size(), ")"));
  }
  if (deal.members().empty()) {
    return absl::InvalidArgumentError("deal: members: missing (expected at least 1, got 0)");
  }
  RETURN_IF_ERROR(
      CheckWorkers("members", {deal.members().begin(), deal.members().end()}, worker_count));
  if (!deal.batches().empty() && deal.batches_size() != deal.members_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("deal: batches: not one number for each member (expected 0 or ",
                     deal.members_size(), " numbers, got ", deal.batches_size(), ")"));
  }
  for (const uint32_t batches : deal.batches()) {
    if (batches >= 1 && batches <= kMostAccumulated) continue;
    return absl::InvalidArgumentError(absl::StrCat("deal: batches: out of range (expected 1 to ",
                                                   kMostAccumulated, ", got ", batches, ")"));
  }
  if (deal.accumulate() > kMostAccumulated) {
    return absl::InvalidArgumentError(absl::StrCat("deal: accumulate: out of range (expected 0 to ",
                                                   kMostAccumulated, ", got ", deal.accumulate(),
                                                   ")"));
  }
  std::vector<uint32_t> departed;
  for (const Deal::Departed& worker : deal.departed()) departed.push_back(worker.worker());
  return CheckWorkers("departed", departed, worker_count);
}

std::string DealText(const Deal& deal) {
  std::string text = absl::StrCat("from step ", deal.step(), " on, the examples are dealt among ",
                                  deal.members_size(), " workers");
  if (!deal.batches().empty()) {
    const auto [least, most] = std::ranges::minmax(deal.batches());
    absl::StrAppend(&text, ", which take ", least, " to ", most, " batches in a step");
  } else if (deal.accumulate() > 0) {
    absl::StrAppend(&text, ", which accumulate ", deal.accumulate(), " batches");
  }
  return text;
}

}  // namespace thinwire
