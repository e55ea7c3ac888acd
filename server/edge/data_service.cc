#include "server/edge/data_service.h"

#include <memory>

#include "proto/grpc_bytes.h"
#include "server/edge/grpc_status.h"
#include "server/edge/server_stream.h"
#include "server/edge/session.h"

namespace thinwire {
namespace {

// One call. gRPC calls OnDone last, after Finish and every other callback; then it goes.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit ExchangeCall(Job& job) {
    StreamLink link;
    link.read = [this] { StartRead(&in_); };
    link.write = [this](const ByteChain& bytes) {
      out_ = ToByteBuffer(bytes);
      StartWrite(&out_);
    };
    link.finish = [this](const absl::Status& status) { Finish(ToGrpc(status)); };
    session_ = job.Open(std::move(link));
    session_->Start();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return session_->OnReadEnd();
    const ByteChain frame = FromByteBuffer(in_);
    in_.Clear();
    session_->OnFrame(frame);
  }
  void OnWriteDone(bool ok) override { session_->OnWritten(ok); }
  void OnCancel() override { session_->OnBroken(); }
  void OnDone() override { delete this; }

 private:
  std::unique_ptr<Session> session_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;  // of the write under way
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DataService::Exchange(
    grpc::CallbackServerContext* /*context*/) {
  return new ExchangeCall(job_);
}

}  // namespace thinwire
