// RawStream is a gRPC stream without a protocol of its own, the baseline of thinwire's network
// benchmarks. The client sends the messages of a block of memory over a generic stream. Each
// message is a gRPC slice that refers to the block, so that no bytes are copied. The server answers
// every message with a message of the same size from its own block.
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
#include "proto/grpc_credentials.h"

namespace thinwire {

// Answers the messages of RawStreams from construction to destruction. Thread-safe.
class RawServer {
 public:
  // LISTEN is host:port; port 0 chooses a free port. REQUIRES: MEMORY_BYTES is a multiple of
  // MESSAGE_BYTES.
  RawServer(size_t memory_bytes, size_t message_bytes, const std::string& listen = "127.0.0.1:0",
            const Credentials& credentials = Credentials());
  ~RawServer();

  const std::string& address() const { return address_; }

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// A block of memory, divided into messages of equal size. Not thread-safe.
class RawMemory {
 public:
  RawMemory(size_t bytes, size_t message_bytes) : memory_(bytes, 1), message_(message_bytes) {}

  // Returns the next message of the block; after the last message, returns the first. The result
  // refers to this object's memory.
  grpc::ByteBuffer Next();

 private:
  const std::vector<char> memory_;
  const size_t message_;
  size_t at_ = 0;
};

// A stream to a RawServer. Not thread-safe.
class RawStream final : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RawStream(const std::string& address, size_t memory_bytes, size_t message_bytes,
            const Credentials& credentials = Credentials());
  ~RawStream() override;

  // Sends COUNT messages and blocks until COUNT messages have arrived.
  void Exchange(int count);

 private:
  void Write();
  bool More(int& left);
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  RawMemory memory_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_, out_;
  absl::Mutex mu_;
  int to_read_ ABSL_GUARDED_BY(mu_) = 0;
  int to_write_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Notification done_;
};

}  // namespace thinwire

#endif  // THINWIRE_BENCH_RAW_STREAM_H_
