#include "server/protocols/sums/sum_follower.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

SumReply ReplyOf(const RoundPart& part) {
  SumReply reply;
  reply.set_step(part.step.value);
  SetSums(part.sums, *reply.mutable_sums());
  return reply;
}

// Returns OK if SUM has all numbers of PART, which is the server's part of it.
absl::Status CheckContains(const RoundPart& sum, const RoundPart& part) {
  for (const auto& [number, sums] : part.sums) {
    if (sum.sums.contains(number)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("sums: incomplete (expected the sum of number ", number, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

void SumFollower::Sum(const SumRequest& request,
                      std::function<void(absl::StatusOr<SumReply>)> done) {
  absl::StatusOr<NumberedSums> sums = SumsOf(request.sums());
  if (!sums.ok()) return done(sums.status());
  const RoundPart sum = {Step{request.step()}, *std::move(sums)};
  if (request.has_step() && part().has_value() && part()->step == sum.step) {
    if (const absl::Status status = CheckContains(sum, *part()); !status.ok()) return done(status);
  }
  if (reply_.has_value()) {
    std::exchange(reply_, std::nullopt)->done(absl::AbortedError("the lead has called again"));
  }
  HeldReply& held = reply_.emplace(HeldReply{std::nullopt, std::move(done)});
  if (request.has_step()) {
    held.after = sum.step;
    Close(sum);
  }
  ReplyIfDue();
}

void SumFollower::ReplyIfDue() {
  if (!reply_.has_value() || !part().has_value() || part()->step <= reply_->after) return;
  std::exchange(reply_, std::nullopt)->done(ReplyOf(*part()));
}

void SumFollower::Stop(const absl::Status& status) {
  if (reply_.has_value()) std::exchange(reply_, std::nullopt)->done(status);
  ShardSums::Stop(status);
}

}  // namespace thinwire
