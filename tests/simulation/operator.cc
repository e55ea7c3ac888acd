#include "tests/simulation/operator.h"

#include <sstream>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "config/job.h"
#include "proto/job.pb.h"
#include "sim/draws.h"

namespace thinwire::simulation {
namespace {

// The operator gives up a call after this time.
constexpr uint64_t kPatienceTicks = 150;

}  // namespace

Operator::Operator(const Job& job, uint64_t seed, std::function<void(const std::string&)> trace)
    : job_(job), random_(seed), trace_(std::move(trace)), confirmed_(job.rule) {
  // Another order of the fold may have other bits if the sums are not exact.
  const bool keeps_bits = !job.rule.ordered_fold || job.exact();
  // The lead passes the first rule on, too.
  const bool may_change = keeps_bits && job.CheckMode(job.rule).ok();
  if (may_change && random_.Percent(40)) changes_left_ = 1 + random_.Below(2);
  next_call_ = 20 + random_.Below(200);
}

void Operator::Tick(uint64_t now, Server* lead, bool may_call) {
  now_ = now;
  if (called_at_.has_value() && now > *called_at_ + kPatienceTicks) {
    called_at_.reset();
    ++call_;
    confirmed_.reset();
  }
  const bool due = changes_left_ > 0 && may_call && now >= next_call_ && !waits();
  if (due && lead != nullptr) Call(*lead);
}

SetModeRequest Operator::DrawRequest() {
  SetModeRequest request;
  request.set_job(job_.name);
  *request.mutable_consistency() = sim::DrawConsistency(random_, job_.rule);
  return request;
}

void Operator::Call(Server& lead) {
  const SetModeRequest request = DrawRequest();
  const Rule rule = RuleOf(request.consistency());
  if (trace_ != nullptr) {
    std::ostringstream text;
    text << "the operator calls for " << rule;
    trace_(text.str());
  }
  succeeded_ = false;
  called_at_ = now_;
  next_call_ = now_ + 20 + random_.Below(80);
  lead.SetMode(request, [this, rule, call = ++call_](const absl::StatusOr<SetModeReply>& reply) {
    if (call == call_) OnReply(rule, reply.status());
  });
}

void Operator::OnReply(const Rule& rule, const absl::Status& status) {
  if (trace_ != nullptr) trace_(absl::StrCat("the operator gets: ", status.ToString()));
  called_at_.reset();
  succeeded_ = status.ok();
  if (status.ok()) confirmed_ = rule;
  if (absl::IsUnknown(status)) confirmed_.reset();
  if (status.ok() || absl::IsInvalidArgument(status)) --changes_left_;
}

}  // namespace thinwire::simulation
