#include "server/rpc/services.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/memory/byte_chain.h"
#include "common/time/bandwidth_limit.h"
#include "proto/grpc_bytes.h"
#include "proto/grpc_status.h"
#include "proto/parsed_bytes.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/rpc/access.h"
#include "server/rpc/grpc_access.h"
#include "server/shards/session.h"
#include "server/shards/stream/server_stream.h"

namespace thinwire {
namespace {

using Token = std::shared_ptr<const void>;

// Returns a callback that passes the answer of the job to FINISH and releases OPEN. A job whose event
// log has failed drops callbacks, because it must not confirm anything. FINISH then gets Unavailable:
// gRPC's server cannot shut down before every call has ended.
template <typename Reply>
Job::Done<Reply> AnswerOrUnavailable(Token open,
                                     std::function<void(absl::StatusOr<Reply>)> finish) {
  struct Call {
    ~Call() {
      if (finish != nullptr) {
        finish(absl::UnavailableError("this server has ended before it could answer"));
      }
    }
    const Token open;
    std::function<void(absl::StatusOr<Reply>)> finish;  // null after the answer
  };
  const auto call = std::make_shared<Call>(std::move(open), std::move(finish));
  return [call](absl::StatusOr<Reply> answer) {
    std::exchange(call->finish, nullptr)(std::move(answer));
  };
}

// Returns a callback that finishes a gRPC call with the job's answer. REPLY must outlive the call.
template <typename Reply>
Job::Done<Reply> FinishWith(grpc::ServerUnaryReactor* reactor, Reply* reply, Token open) {
  return AnswerOrUnavailable<Reply>(std::move(open),
                                    [reactor, reply](absl::StatusOr<Reply> answer) {
                                      if (answer.ok()) *reply = *std::move(answer);
                                      reactor->Finish(ToGrpc(answer.status()));
                                    });
}

// Streams the masters of one shard after another. Requests the next shard only after the previous
// shard is written, so that one shard at a time is in memory.
class MastersCall final : public grpc::ServerWriteReactor<MastersChunk> {
 public:
  // UPLINK: null: no limit.
  MastersCall(Job& job, const MastersRequest& request, Token open,
              std::shared_ptr<BandwidthLimit> uplink)
      : job_(job), request_(request), open_(std::move(open)), uplink_(std::move(uplink)) {
    RequestNext();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the peer has disconnected"));
    if (++chunk_ < chunks_.size()) return WriteChunk();
    RequestNext();
  }
  void OnDone() override { delete this; }

 private:
  void RequestNext() {
    using Chunks = std::vector<MastersChunk>;
    const auto write = [this](absl::StatusOr<Chunks> chunks) {
      if (!chunks.ok() || chunks->empty()) return Finish(ToGrpc(chunks.status()));
      chunks_ = *std::move(chunks);
      chunk_ = 0;
      WriteChunk();
    };
    job_.Masters(request_, index_++, AnswerOrUnavailable<Chunks>(open_, write));
  }
  void WriteChunk() {
    if (uplink_ == nullptr) return StartWrite(&chunks_[chunk_]);
    // This object exists until its Finish, and the write of a cancelled call fails.
    uplink_->Await([this] {
      uplink_->Spend(chunks_[chunk_].ByteSizeLong());
      StartWrite(&chunks_[chunk_]);
    });
  }

  Job& job_;
  const MastersRequest request_;
  const Token open_;
  const std::shared_ptr<BandwidthLimit> uplink_;
  size_t index_ = 0;  // position, among this server's shards, of the next shard
  std::vector<MastersChunk> chunks_;
  size_t chunk_ = 0;
};

// Returns StreamLink::await_write or await_read for LIMIT, which must outlive the call. A stream
// may outlive both, but awaits nothing after its `finish`.
std::function<void(absl::AnyInvocable<void()>)> AwaitOf(BandwidthLimit* limit) {
  if (limit == nullptr) return nullptr;
  return [limit](absl::AnyInvocable<void()> task) { limit->Await(std::move(task)); };
}

// Serves one Exchange call. gRPC calls OnDone last, after Finish and every other callback, so
// OnDone deletes the object.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // PROOF is that of the peer. CERTIFICATE_CHECK: see CallAccess.
  ExchangeCall(Job& job, Token open, const Bandwidth& bandwidth, WorkerProof proof,
               std::function<absl::Status()> certificate_check)
      : open_(std::move(open)), bandwidth_(bandwidth) {
    StreamLink link;
    link.await_write = AwaitOf(bandwidth.up.get());
    link.await_read = AwaitOf(bandwidth.down.get());
    link.check_sender = [&job, proof = std::move(proof),
                         certificate_check = std::move(certificate_check)](
                            WorkerId worker, Incarnation incarnation) {
      RETURN_IF_ERROR(certificate_check());
      return CheckProcess(proof, job.tokens(), worker, incarnation);
    };
    link.read = [this] { StartRead(&in_); };
    link.write = [this](const ByteChain& bytes) {
      if (bandwidth_.up != nullptr) bandwidth_.up->Spend(bytes.size());
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
    if (bandwidth_.down != nullptr) bandwidth_.down->Spend(frame.size());
    session_->OnFrame(frame);
  }
  void OnWriteDone(bool ok) override { session_->OnWritten(ok); }
  void OnCancel() override { session_->OnBroken(); }
  void OnDone() override { delete this; }

 private:
  const Token open_;
  const Bandwidth bandwidth_;
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

// Returns OK if the calling peer may act as the process that REQUEST names. Errors:
// PermissionDenied.
template <typename Request>
absl::Status CheckCaller(const grpc::CallbackServerContext& context, const Job& job,
                         const Request& request) {
  return CheckProcess(ProofOf(context), job.tokens(), WorkerId{request.worker()},
                      Incarnation{request.incarnation()});
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

template <typename Request>
ControlService::Reactor* ControlService::Pass(Context* context, const Request* request,
                                              ReplyTo<Request>* reply) {
  if (const absl::Status allowed = access_.Check(*context, MethodOf<Request>()); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  const auto call = job_.Begin(&CallLimits::others);
  if (!call.ok()) return Refuse(context, call.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  call->job->Call(*request, FinishWith(reactor, reply, call->token));
  return reactor;
}

std::string CallLimit::Count() const {
  absl::MutexLock lock(&open_->mu);
  return absl::StrCat(open_->count, " ", kind_);
}

absl::StatusOr<std::shared_ptr<const void>> CallLimit::Open() {
  absl::MutexLock lock(&open_->mu);
  if (open_->count >= most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("server: too many open ", kind_, " (expected at most ", most_, ")"));
  }
  ++open_->count;
  return Token(open_.get(), [open = open_](const void*) {
    absl::MutexLock lock(&open->mu);
    --open->count;
  });
}

bool CallLimit::AwaitNone(absl::Time deadline) const {
  const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(open_->mu) { return open_->count == 0; };
  absl::MutexLock lock(&open_->mu);
  return open_->mu.AwaitWithDeadline(absl::Condition(&none), deadline);
}

std::string CallLimits::Count() const {
  return absl::StrJoin({streams.Count(), joins.Count(), reports.Count(), others.Count()}, ", ");
}

bool CallLimits::AwaitNone(absl::Time deadline) const {
  return streams.AwaitNone(deadline) && joins.AwaitNone(deadline) && reports.AwaitNone(deadline) &&
         others.AwaitNone(deadline);
}

absl::StatusOr<ServedJob::Call> ServedJob::Begin(CallLimit CallLimits::*kind) {
  // Before the job is read, so that Suspend and then AwaitNone find every call.
  ASSIGN_OR_RETURN(Token token, (limits_.*kind).Open());
  Job* const job = job_;
  if (job == nullptr) return absl::UnavailableError("this server goes back to an earlier step");
  return Call{job, std::move(token)};
}

ControlService::Reactor* ControlService::Join(Context* context, const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* reply) {
  if (const absl::Status allowed = access_.Check(*context, MethodOf<JoinRequest>());
      !allowed.ok()) {
    return Refuse(context, allowed);
  }
  const auto call = job_.Begin(&CallLimits::joins);
  if (!call.ok()) return Refuse(context, call.status());
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
  const WorkerProof proof = ProofOf(*context);
  const WorkerId worker{parsed.worker()};
  if (const absl::Status allowed = CheckWorker(proof, worker); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  // The job calls this function once it knows that the caller belongs to its run.
  const auto may_rejoin = [&job = *call->job, proof, worker,
                           incarnation = Incarnation{parsed.incarnation()}] {
    return CheckProcess(proof, job.tokens(), worker, incarnation);
  };
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  call->job->Join(
      std::move(parsed), [context] { return context->IsCancelled(); },
      AnswerOrUnavailable<JoinReply>(call->token,
                                     [reactor, reply](const absl::StatusOr<JoinReply>& answer) {
                                       if (!answer.ok())
                                         return reactor->Finish(ToGrpc(answer.status()));
                                       bool own_buffer = false;
                                       reactor->Finish(
                                           grpc::SerializationTraits<JoinReply>::Serialize(
                                               *answer, reply, &own_buffer));
                                     }),
      may_rejoin);
  return reactor;
}

ControlService::Reactor* ControlService::Heartbeat(Context* context,
                                                   const HeartbeatRequest* request,
                                                   HeartbeatReply* reply) {
  if (const absl::Status allowed = access_.Check(*context, MethodOf<HeartbeatRequest>());
      !allowed.ok()) {
    return Refuse(context, allowed);
  }
  const auto call = job_.Begin(&CallLimits::others);
  if (!call.ok()) return Refuse(context, call.status());
  Job& job = *call->job;
  // A heartbeat with another epoch needs no token: it changes nothing, and its reply tells a worker
  // to join again.
  const bool current = request->epoch() == job.epoch().value;
  const absl::Status allowed = current
                                   ? CheckCaller(*context, job, *request)
                                   : CheckWorker(ProofOf(*context), WorkerId{request->worker()});
  if (!allowed.ok()) return Refuse(context, allowed);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const WorkerProof proof = ProofOf(*context);
  const bool renews = current && proof.needs_token && WorkerTokens::EndsSoon(proof.token);
  // The outer callback may be destroyed uncalled, and ANSWER then ends the call.
  job.Call(*request, [&job, answer = FinishWith(reactor, reply, call->token), renews,
                      worker = WorkerId{request->worker()},
                      incarnation = Incarnation{request->incarnation()}](
                         absl::StatusOr<HeartbeatReply> heartbeat) {
    if (renews && heartbeat.ok() && !heartbeat->fenced()) {
      heartbeat->set_token(job.tokens().Of(worker, incarnation));
    }
    answer(std::move(heartbeat));
  });
  return reactor;
}

ControlService::Reactor* ControlService::Leave(Context* context, const LeaveRequest* request,
                                               LeaveReply* reply) {
  if (const absl::Status allowed = access_.Check(*context, MethodOf<LeaveRequest>());
      !allowed.ok()) {
    return Refuse(context, allowed);
  }
  const auto call = job_.Begin(&CallLimits::others);
  if (!call.ok()) return Refuse(context, call.status());
  if (const absl::Status allowed = CheckCaller(*context, *call->job, *request); !allowed.ok()) {
    return Refuse(context, allowed);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  call->job->Call(*request, FinishWith(reactor, reply, call->token));
  return reactor;
}

ControlService::Reactor* ControlService::Status(Context* context, const StatusRequest* request,
                                                StatusReply* reply) {
  if (const absl::Status allowed = access_.Check(*context, MethodOf<StatusRequest>());
      !allowed.ok()) {
    return Refuse(context, allowed);
  }
  const auto call = job_.Begin(&CallLimits::reports);
  if (!call.ok()) return Refuse(context, call.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  call->job->Call(*request, FinishWith(reactor, reply, call->token));
  return reactor;
}

grpc::ServerWriteReactor<MastersChunk>* ControlService::Masters(
    grpc::CallbackServerContext* context, const MastersRequest* request) {
  using Refused = RefusedCall<grpc::ServerWriteReactor<MastersChunk>>;
  if (const absl::Status allowed = access_.Check(*context, "/thinwire.Control/Masters");
      !allowed.ok()) {
    return new Refused(allowed);
  }
  const auto call = job_.Begin(&CallLimits::reports);
  if (!call.ok()) return new Refused(call.status());
  return new MastersCall(*call->job, *request, call->token, uplink_);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* DataService::Exchange(
    grpc::CallbackServerContext* context) {
  using Refused = RefusedCall<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;
  if (const absl::Status allowed = access_.Check(*context, "/thinwire.ParameterService/Exchange");
      !allowed.ok()) {
    return new Refused(allowed);
  }
  const auto call = job_.Begin(&CallLimits::streams);
  if (!call.ok()) return new Refused(call.status());
  return new ExchangeCall(*call->job, call->token, bandwidth_, ProofOf(*context),
                          access_.CertificateCheck(*context));
}

}  // namespace thinwire
