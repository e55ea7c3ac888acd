// WorkerTokens makes and checks the tokens of a server's run (common/tls/worker_token.h).
//
// Thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_WORKER_TOKENS_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_WORKER_TOKENS_H_

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace thinwire {

// The life of a token. A worker gets a new one from a heartbeat in the second half of its life.
inline constexpr absl::Duration kTokenLife = absl::Hours(24);

// NOW is the Unix time.
class WorkerTokens {
 public:
  // KEY is the key of the run; "": this server has no key yet, so it makes and accepts no token.
  explicit WorkerTokens(std::string job, std::string key = "")
      : job_(std::move(job)), key_(std::move(key)) {}

  void set_key(std::string key) ABSL_LOCKS_EXCLUDED(mu_);
  std::string key() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns a token of INCARNATION of WORKER that ends kTokenLife after NOW, or "" without a key.
  std::string Of(WorkerId worker, Incarnation incarnation, absl::Time now = absl::Now()) const;
  // Returns OK if TOKEN is a token of INCARNATION of WORKER that has not ended. Errors:
  // PermissionDenied.
  absl::Status Check(WorkerId worker, Incarnation incarnation, absl::string_view token,
                     absl::Time now = absl::Now()) const;
  // Returns whether TOKEN, which Check has accepted, is in the second half of its life.
  static bool EndsSoon(absl::string_view token, absl::Time now = absl::Now());

 private:
  const std::string job_;
  mutable absl::Mutex mu_;
  std::string key_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_WORKER_TOKENS_H_
