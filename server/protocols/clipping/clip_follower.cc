#include "server/protocols/clipping/clip_follower.h"

#include <utility>

namespace thinwire {
namespace {

ClipReply ReplyOf(const FullRound& part) {
  ClipReply reply;
  reply.set_step(part.step.value);
  reply.set_squared_norm(part.squared_norm);
  return reply;
}

}  // namespace

void ClipFollower::Clip(const ClipRequest& request,
                        std::function<void(absl::StatusOr<ClipReply>)> done) {
  if (reply_.has_value()) {
    std::exchange(reply_, std::nullopt)->done(absl::AbortedError("the lead has called again"));
  }
  HeldReply& held = reply_.emplace(HeldReply{std::nullopt, std::move(done)});
  if (request.has_step()) {
    held.after = Step{request.step()};
    Close({Step{request.step()}, request.squared_norm()});
  }
  ReplyIfDue();
}

void ClipFollower::ReplyIfDue() {
  if (!reply_.has_value() || !part().has_value() || part()->step <= reply_->after) return;
  std::exchange(reply_, std::nullopt)->done(ReplyOf(*part()));
}

void ClipFollower::Stop(const absl::Status& status) {
  if (reply_.has_value()) std::exchange(reply_, std::nullopt)->done(status);
  Clipper::Stop(status);
}

}  // namespace thinwire
