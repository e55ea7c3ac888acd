// PendingCalls: the calls of an object, such as a transport, that gRPC has not finished. The object's
// destructor waits for them.
//
//   calls.Begin(context);
//   stub.Method(&context, ..., [this, call](const grpc::Status& status) mutable {
//     calls.End(call->context);
//     ...
//     call.reset();      // destroys the context, which holds a reference to its channel
//     calls.Release();
//   });
//
// If a thread of gRPC released the last reference to a channel, the channel's destructor would wait
// for this same thread to end; gRPC 1.51 then aborts the process ("assertion failed: prior > 0").
// The owner of the channel therefore has to outlive the context of each call.
#ifndef THINWIRE_PROTO_PENDING_CALLS_H_
#define THINWIRE_PROTO_PENDING_CALLS_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace grpc {
class ClientContext;
}

namespace thinwire {

// Thread-safe.
class PendingCalls {
 public:
  PendingCalls() = default;
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;
  // REQUIRES: no call is pending.
  ~PendingCalls() = default;

  // A call starts. Call before gRPC knows it.
  void Begin(grpc::ClientContext& context);
  // The call has ended, and CONTEXT may be destroyed.
  void End(grpc::ClientContext& context);
  // The context of a call that has ended is destroyed.
  void Release();
  // Cancels all calls, and blocks until all are released. No call may begin from now on.
  void Finish();

 private:
  absl::Mutex mu_;
  std::set<grpc::ClientContext*> cancellable_ ABSL_GUARDED_BY(mu_);
  int count_ ABSL_GUARDED_BY(mu_) = 0;  // calls that are not released
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_PENDING_CALLS_H_
