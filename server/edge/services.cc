#include "server/edge/services.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "proto/grpc_bytes.h"
#include "server/edge/server_stream.h"
#include "server/edge/session.h"

namespace thinwire {
namespace {

// Converts a status. gRPC and absl number their status codes equally.
grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// Returns a callback that finishes a call with the job's answer. REPLY must outlive the call.
template <typename Reply>
Job::Done<Reply> FinishWith(grpc::ServerUnaryReactor* reactor, Reply* reply) {
  return [reactor, reply](absl::StatusOr<Reply> answer) {
    if (answer.ok()) *reply = *std::move(answer);
    reactor->Finish(ToGrpc(answer.status()));
  };
}

// Streams the masters of one shard after another. Requests the next shard only after the previous
// shard is written, so that one shard at a time is in memory.
class MastersCall final : public grpc::ServerWriteReactor<MastersChunk> {
 public:
  explicit MastersCall(Job& job) : job_(job) { RequestNext(); }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the peer has disconnected"));
    if (++chunk_ < chunks_.size()) return StartWrite(&chunks_[chunk_]);
    RequestNext();
  }
  void OnDone() override { delete this; }

 private:
  void RequestNext() {
    job_.Masters(index_++, [this](absl::StatusOr<std::vector<MastersChunk>> chunks) {
      if (!chunks.ok() || chunks->empty()) return Finish(ToGrpc(chunks.status()));
      chunks_ = *std::move(chunks);
      chunk_ = 0;
      StartWrite(&chunks_[0]);
    });
  }

  Job& job_;
  size_t index_ = 0;  // position of the next shard to request
  std::vector<MastersChunk> chunks_;
  size_t chunk_ = 0;
};

// One Exchange call. gRPC calls OnDone last, after Finish and every other callback.
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
  grpc::ByteBuffer out_;  // bytes of the current write
};

}  // namespace

grpc::ServerUnaryReactor* ControlService::Join(grpc::CallbackServerContext* context,
                                               const JoinRequest* request, JoinReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Join(
      *request, [context] { return context->IsCancelled(); }, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Heartbeat(grpc::CallbackServerContext* context,
                                                    const HeartbeatRequest* request,
                                                    HeartbeatReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Heartbeat(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Leave(grpc::CallbackServerContext* context,
                                                const LeaveRequest* request, LeaveReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Leave(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Status(grpc::CallbackServerContext* context,
                                                 const StatusRequest* /*request*/,
                                                 StatusReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Status(FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerWriteReactor<MastersChunk>* ControlService::Masters(
    grpc::CallbackServerContext* /*context*/, const MastersRequest* /*request*/) {
  return new MastersCall(job_);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DataService::Exchange(
    grpc::CallbackServerContext* /*context*/) {
  return new ExchangeCall(job_);
}

}  // namespace thinwire
