#include "server/edge/services.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/byte_chain.h"
#include "common/ids.h"
#include "proto/grpc_bytes.h"
#include "proto/parsed_bytes.h"
#include "server/edge/access.h"
#include "server/edge/grpc_access.h"
#include "server/edge/session.h"
#include "server/edge/stream/server_stream.h"

namespace thinwire {
namespace {

// Converts an absl::Status to a grpc::Status. gRPC and absl number their status codes equally.
grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// Returns a callback that finishes a gRPC call with the job's answer. REPLY must outlive the call.
template <typename Reply>
Job::Done<Reply> FinishWith(grpc::ServerUnaryReactor* reactor, Reply* reply) {
  return [reactor, reply](absl::StatusOr<Reply> answer) {
    if (answer.ok()) *reply = *std::move(answer);
    reactor->Finish(ToGrpc(answer.status()));
  };
}

using Token = std::shared_ptr<const void>;

// Streams the masters of one shard after another. Requests the next shard only after the previous
// shard is written, so that one shard at a time is in memory.
class MastersCall final : public grpc::ServerWriteReactor<MastersChunk> {
 public:
  MastersCall(Job& job, Token open) : job_(job), open_(std::move(open)) { RequestNext(); }

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
  const Token open_;
  size_t index_ = 0;  // position, among this server's shards, of the next shard
  std::vector<MastersChunk> chunks_;
  size_t chunk_ = 0;
};

// Serves one Exchange call. gRPC calls OnDone last, after Finish and every other callback, so
// OnDone deletes the object.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // CERTIFIED is the number in the peer's certificate.
  ExchangeCall(Job& job, Token open, std::optional<WorkerId> certified) : open_(std::move(open)) {
    StreamLink link;
    link.certified = certified;
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
  const Token open_;
  std::unique_ptr<Session> session_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;  // the message of the write in progress
};

// A call that ends at once with an error. REACTOR is the class of the call's reactor.
template <typename Reactor>
class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) { this->Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// Returns OK if the calling peer may act as WORKER. Errors: PermissionDenied.
absl::Status CheckCaller(const grpc::CallbackServerContext& context, uint32_t worker) {
  return CheckWorker(CertifiedWorker(*context.auth_context()), WorkerId{worker});
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const void>> CallLimit::Open() {
  const bool allowed = open_count_->fetch_add(1) < most_;
  Token token(open_count_.get(), [count = open_count_](const void*) { --*count; });
  if (allowed) return token;
  return absl::ResourceExhaustedError(
      absl::StrCat("server: too many open ", kind_, " (expected at most ", most_, ")"));
}

grpc::ServerUnaryReactor* ControlService::Join(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* reply) {
  const auto open = limits_.joins.Open();
  if (!open.ok()) return Refuse(context, open.status());
  // Reading consumes a buffer, so each pass has a buffer of its own, which shares the bytes.
  grpc::ByteBuffer unparsed = *request;
  grpc::ProtoBufferReader reader(&unparsed);
  const absl::Status bounded = CheckParsedBytes(reader, *JoinRequest::descriptor());
  if (!bounded.ok()) return Refuse(context, bounded);
  grpc::ByteBuffer bytes = *request;
  JoinRequest parsed;
  if (!grpc::SerializationTraits<JoinRequest>::Deserialize(&bytes, &parsed).ok()) {
    return Refuse(context, absl::InvalidArgumentError(
                               absl::StrCat("join: not a JoinRequest of proto/control.proto (got ",
                                            request->Length(), " bytes)")));
  }
  if (const absl::Status allowed = CheckCaller(*context, parsed.worker()); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Join(
      std::move(parsed), [context] { return context->IsCancelled(); },
      [reactor, reply, open = *open](const absl::StatusOr<JoinReply>& answer) {
        if (!answer.ok()) return reactor->Finish(ToGrpc(answer.status()));
        bool own_buffer = false;
        reactor->Finish(
            grpc::SerializationTraits<JoinReply>::Serialize(*answer, reply, &own_buffer));
      });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Admit(grpc::CallbackServerContext* context,
                                                const AdmitRequest* request, AdmitReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Admit(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Follow(grpc::CallbackServerContext* context,
                                                 const FollowRequest* request, FollowReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Follow(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Rollback(grpc::CallbackServerContext* context,
                                                   const RollbackRequest* request,
                                                   RollbackReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Rollback(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Heartbeat(grpc::CallbackServerContext* context,
                                                    const HeartbeatRequest* request,
                                                    HeartbeatReply* reply) {
  if (const absl::Status allowed = CheckCaller(*context, request->worker()); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Heartbeat(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Leave(grpc::CallbackServerContext* context,
                                                const LeaveRequest* request, LeaveReply* reply) {
  if (const absl::Status allowed = CheckCaller(*context, request->worker()); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Leave(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Scale(grpc::CallbackServerContext* context,
                                                const ScaleRequest* request, ScaleReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Scale(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Drain(grpc::CallbackServerContext* context,
                                                const DrainRequest* request, DrainReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Drain(*request, FinishWith(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Status(grpc::CallbackServerContext* context,
                                                 const StatusRequest* /*request*/,
                                                 StatusReply* reply) {
  const auto open = limits_.reports.Open();
  if (!open.ok()) return Refuse(context, open.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Status([finish = FinishWith(reactor, reply),
               open = *open](absl::StatusOr<StatusReply> answer) { finish(std::move(answer)); });
  return reactor;
}

grpc::ServerWriteReactor<MastersChunk>* ControlService::Masters(
    grpc::CallbackServerContext* /*context*/, const MastersRequest* /*request*/) {
  auto open = limits_.reports.Open();
  if (!open.ok()) return new RefusedCall<grpc::ServerWriteReactor<MastersChunk>>(open.status());
  return new MastersCall(job_, *std::move(open));
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DataService::Exchange(
    grpc::CallbackServerContext* context) {
  auto open = limits_.streams.Open();
  if (!open.ok()) {
    return new RefusedCall<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>(
        open.status());
  }
  return new ExchangeCall(job_, *std::move(open), CertifiedWorker(*context->auth_context()));
}

}  // namespace thinwire
