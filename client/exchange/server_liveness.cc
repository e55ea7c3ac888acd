#include "client/exchange/server_liveness.h"

#include <utility>

namespace thinwire::client {

std::optional<size_t> LongestOutage(std::span<const std::optional<ServerOutage>> outages) {
  std::optional<size_t> longest;
  for (size_t i = 0; i < outages.size(); ++i) {
    if (!outages[i].has_value()) continue;
    if (!longest.has_value() || outages[i]->duration > outages[*longest]->duration) longest = i;
  }
  return longest;
}

void ServerLiveness::CallAnswered(absl::Time now) {
  last_sign_ = now;
  if (stream_up_) last_error_ = absl::OkStatus();
}

void ServerLiveness::CallFailed(absl::Status error) { last_error_ = std::move(error); }

void ServerLiveness::MessageReceived(absl::Time now) {
  CallAnswered(now);
  MessageAccepted(now);
  stream_lost_at_.reset();
}

void ServerLiveness::MessageAccepted(absl::Time now) {
  if (stream_up_) return;
  stream_up_ = true;
  stream_up_since_ = now;
}

void ServerLiveness::StreamLost(absl::Time now, absl::Status error) {
  last_error_ = std::move(error);
  // An outage continues if the server accepts a new stream but the stream is lost again before it
  // is stable.
  const bool was_up = stream_up_ && now - stream_up_since_ > stable_;
  if (was_up || !stream_lost_at_.has_value()) stream_lost_at_ = now;
  stream_up_ = false;
}

void ServerLiveness::Restart(absl::Time now) {
  last_sign_ = now;
  if (stream_lost_at_.has_value()) stream_lost_at_ = now;
}

std::optional<ServerOutage> ServerLiveness::OutageAt(absl::Time now, absl::Duration limit) const {
  const absl::Duration silence = now - last_sign_;
  if (silence > limit) return ServerOutage{ServerState::kSilent, silence, last_error_};
  if (stream_up_ || !stream_lost_at_.has_value()) return std::nullopt;
  const absl::Duration refusal = now - *stream_lost_at_;
  if (refusal <= limit) return std::nullopt;
  return ServerOutage{ServerState::kRefusing, refusal, last_error_};
}

}  // namespace thinwire::client
