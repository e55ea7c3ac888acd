#include "client/hearing.h"

#include <utility>

namespace thinwire::client {

Hearing::Hearing(absl::Duration limit, uint32_t server_count, absl::Time now)
    : limit_(limit), ears_(server_count, Ear{.heard = now, .held_since = now}) {}

void Hearing::Heard(ServerId server, absl::Time now) {
  Ear& ear = ears_[server.value];
  ear.heard = now;
  if (ear.held) ear.last_error = absl::OkStatus();
}

void Hearing::Failed(ServerId server, absl::Status error) {
  ears_[server.value].last_error = std::move(error);
}

void Hearing::StreamSpoke(ServerId server, absl::Time now) {
  Heard(server, now);
  StreamHeld(server, now);
  ears_[server.value].lost_since.reset();
}

void Hearing::StreamHeld(ServerId server, absl::Time now) {
  Ear& ear = ears_[server.value];
  if (ear.held) return;
  ear.held = true;
  ear.held_since = now;
}

void Hearing::StreamLost(ServerId server, absl::Time now, absl::Status error) {
  Ear& ear = ears_[server.value];
  ear.last_error = std::move(error);
  // A stream that is taken and lost again at once was not held: the loss goes on.
  const bool was_held = ear.held && now - ear.held_since > limit_;
  if (was_held || !ear.lost_since.has_value()) ear.lost_since = now;
  ear.held = false;
}

void Hearing::Forgive(absl::Time now) {
  for (Ear& ear : ears_) {
    ear.heard = now;
    if (ear.lost_since.has_value()) ear.lost_since = now;
  }
}

std::optional<Hearing::Loss> Hearing::Judge(absl::Time now) const {
  std::optional<Loss> worst;
  for (uint32_t s = 0; s < ears_.size(); ++s) {
    const Ear& ear = ears_[s];
    Loss loss{.server = ServerId{s}, .since = now - ear.heard, .last_error = ear.last_error};
    if (loss.since <= limit_ && !ear.held && ear.lost_since.has_value()) {
      loss.since = now - *ear.lost_since;
      loss.refusing = true;
    }
    if (loss.since > limit_ && (!worst.has_value() || loss.since > worst->since)) worst = loss;
  }
  return worst;
}

}  // namespace thinwire::client
