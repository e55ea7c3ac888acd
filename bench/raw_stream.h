// What gRPC itself can carry: messages through a bare generic stream, as raw slices, sent back by
// the server as they came. The measure that the wire of thinwire is held against.
#ifndef THINWIRE_BENCH_RAW_STREAM_H_
#define THINWIRE_BENCH_RAW_STREAM_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace thinwire {

// Thread-safe. Serves from its making to its end.
class EchoServer {
 public:
  explicit EchoServer(int window_bytes);
  ~EchoServer();

  const std::string& address() const { return address_; }

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// A stream to an EchoServer. Not thread-safe.
class RawStream final : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RawStream(const std::string& address, size_t message_bytes, int window_bytes);
  ~RawStream() override;

  // Sends COUNT messages, each from where it lies, and returns when all have come back.
  void Exchange(int count);

 private:
  void Write();
  bool More(int& left);
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const std::vector<char> memory_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_, out_;
  absl::Mutex mu_;
  int to_read_ ABSL_GUARDED_BY(mu_) = 0;
  int to_write_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Notification done_;
};

}  // namespace thinwire

#endif  // THINWIRE_BENCH_RAW_STREAM_H_
