// StopSignal: ends the waits of one thread from another thread, such as a thread that handles
// SIGTERM.
#ifndef THINWIRE_CLIENT_TRANSPORT_STOP_SIGNAL_H_
#define THINWIRE_CLIENT_TRANSPORT_STOP_SIGNAL_H_

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire::client {

// Thread-safe.
class StopSignal {
 public:
  // Ends all waits, now and in the future. Idempotent.
  void Set();
  bool is_set() const;

  // Runs CHANGE, which changes the state that the condition of a wait reads.
  void Update(absl::FunctionRef<void()> change);
  // Blocks until DONE returns true, the signal is set, or TIMEOUT has passed. Returns the last
  // result of DONE. DONE may read only state that Update changes, and constants.
  bool WaitUntil(absl::FunctionRef<bool()> done, absl::Duration timeout);
  // Blocks until the signal is set or TIMEOUT has passed.
  void Wait(absl::Duration timeout) {
    WaitUntil([] { return false; }, timeout);
  }

 private:
  mutable absl::Mutex mu_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_STOP_SIGNAL_H_
