// GrpcStream: one Exchange call. Frames go in and come out as raw bytes.
#ifndef THINWIRE_CLIENT_GRPC_STREAM_H_
#define THINWIRE_CLIENT_GRPC_STREAM_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/transport.h"
#include "common/byte_chain.h"

namespace thinwire {

absl::Status FromGrpc(const grpc::Status& status);

// Thread-safe.
class GrpcStream final : public Stream,
                         private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Opens the call on CHANNEL; OBSERVER outlives the stream.
  GrpcStream(std::shared_ptr<grpc::Channel> channel, StreamObserver& observer);
  ~GrpcStream() override;

  void Write(ByteChain frame) override;
  void ReadNext() override;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  // True once: the caller must then remove the hold.
  bool End();

  const std::shared_ptr<grpc::Channel> channel_;
  StreamObserver& observer_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;  // gRPC's from StartRead to OnReadDone
  grpc::ByteBuffer outgoing_;  // gRPC's from StartWrite to OnWriteDone

  absl::Mutex mu_;
  // Nothing may be started any more. Until then a hold keeps gRPC from ending the call while
  // another thread starts something.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  absl::Notification done_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_GRPC_STREAM_H_
