// Serial: runs pieces of work one at a time, in the order in which they came, on the threads that
// bring them.
//
// Unlike a strand it costs no hop: whoever finds it idle runs its work at once, and also what
// others bring meanwhile. So calls into gRPC for one stream never overlap, and none is made while a
// lock is held.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_SERIAL_H_
#define THINWIRE_SERVER_EDGE_SERIAL_H_

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

class Serial {
 public:
  // Runs WORK now, or leaves it to the thread that is running another; then it runs after this
  // returns. REQUIRES: the Serial lives until the call returns, also if WORK lets go of its owner.
  void Run(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<absl::AnyInvocable<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SERIAL_H_
