#include "server/protocols/membership/worker_tokens.h"

#include "absl/strings/str_cat.h"
#include "common/tls/worker_token.h"

namespace thinwire {

void WorkerTokens::set_key(std::string key) {
  absl::MutexLock lock(&mu_);
  key_ = std::move(key);
}

std::string WorkerTokens::key() const {
  absl::MutexLock lock(&mu_);
  return key_;
}

std::string WorkerTokens::Of(WorkerId worker, Incarnation incarnation, absl::Time now) const {
  const std::string key = this->key();
  return key.empty() ? "" : WorkerToken(key, job_, worker, incarnation, now + kTokenLife);
}

absl::Status WorkerTokens::Check(WorkerId worker, Incarnation incarnation, absl::string_view token,
                                 absl::Time now) const {
  const std::string key = this->key();
  const absl::Time end = TokenEnd(token);
  if (!key.empty() && SameToken(WorkerToken(key, job_, worker, incarnation, end), token)) {
    if (now < end) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("token: expired (valid until ",
                     absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone()),
                     "); a worker gets a new one with its heartbeats"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("token: required with a certificate without number (expected that of worker ",
                   worker.value, " incarnation ", incarnation.value, " in this server's run, got ",
                   token.empty() ? "none" : "another one", ")"));
}

bool WorkerTokens::EndsSoon(absl::string_view token, absl::Time now) {
  return TokenEnd(token) - now < kTokenLife / 2;
}

}  // namespace thinwire
