#include "proto/pending_calls.h"

#include <grpcpp/client_context.h>

namespace thinwire {

void PendingCalls::Begin(grpc::ClientContext& context) {
  absl::MutexLock lock(&mu_);
  cancellable_.insert(&context);
  ++count_;
}

void PendingCalls::End(grpc::ClientContext& context) {
  absl::MutexLock lock(&mu_);
  cancellable_.erase(&context);
}

void PendingCalls::Release() {
  absl::MutexLock lock(&mu_);
  --count_;
}

void PendingCalls::Finish() {
  absl::MutexLock lock(&mu_);
  for (grpc::ClientContext* context : cancellable_) context->TryCancel();
  mu_.Await(absl::Condition(
      +[](int* count) { return *count == 0; }, &count_));
}

}  // namespace thinwire
