#include "server/protocols/rules/rule_follower.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

void RuleFollower::SetMode(const SetModeRequest& request,
                           const std::function<void(absl::StatusOr<SetModeReply>)>& done) {
  if (request.change() < change_) {
    // Without the number of the request, so that the lead logs the error of all its retries once.
    return done(absl::FailedPreconditionError(
        absl::StrCat("change: older than the newest one (expected at least ", change_, ")")));
  }
  change_ = request.change();
  const absl::StatusOr<Rule> rule = state_.rule.RuleFor(request.consistency());
  if (!rule.ok()) return done(rule.status());
  const absl::Status reserved = shards_.Reserve(rule->workers);
  if (!reserved.ok()) return done(reserved);
  state_.rule.set_target(rule->workers);
  own_.Become({*rule, Step{request.step()}}, [done] { done(SetModeReply()); });
}

}  // namespace thinwire
