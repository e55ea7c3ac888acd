#include "server/edge/worker_tokens.h"

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

std::string WorkerTokens::Of(WorkerId worker, Incarnation incarnation) const {
  const std::string key = this->key();
  return key.empty() ? "" : WorkerToken(key, job_, worker, incarnation);
}

absl::Status WorkerTokens::Check(WorkerId worker, Incarnation incarnation,
                                 absl::string_view token) const {
  const std::string expected = Of(worker, incarnation);
  if (!expected.empty() && SameToken(expected, token)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("token: required with a certificate without number (expected that of worker ",
                   worker.value, " incarnation ", incarnation.value, " in this server's run, got ",
                   token.empty() ? "none" : "another one", ")"));
}

}  // namespace thinwire
