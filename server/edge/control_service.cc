#include "server/edge/control_service.h"

#include <utility>
#include <vector>

#include "server/edge/grpc_status.h"

namespace thinwire {
namespace {

// Gives a job's answer to a call; the reply lives until the call is finished.
template <typename Reply>
Job::Done<Reply> Answer(grpc::ServerUnaryReactor* reactor, Reply* reply) {
  return [reactor, reply](absl::StatusOr<Reply> answer) {
    if (answer.ok()) *reply = *std::move(answer);
    reactor->Finish(ToGrpc(answer.status()));
  };
}

// Streams the masters shard by shard: the next shard is asked for when the last one is written, so
// that one shard is in memory at a time.
class MastersCall final : public grpc::ServerWriteReactor<MastersChunk> {
 public:
  explicit MastersCall(Job& job) : job_(job) { AskNext(); }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the peer is gone"));
    if (++chunk_ < chunks_.size()) return StartWrite(&chunks_[chunk_]);
    AskNext();
  }
  void OnDone() override { delete this; }

 private:
  void AskNext() {
    job_.Masters(place_++, [this](absl::StatusOr<std::vector<MastersChunk>> chunks) {
      if (!chunks.ok() || chunks->empty()) return Finish(ToGrpc(chunks.status()));
      chunks_ = *std::move(chunks);
      chunk_ = 0;
      StartWrite(&chunks_[0]);
    });
  }

  Job& job_;
  size_t place_ = 0;  // of the next shard to ask for
  std::vector<MastersChunk> chunks_;
  size_t chunk_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* ControlService::Join(grpc::CallbackServerContext* context,
                                               const JoinRequest* request, JoinReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Join(
      *request, [context] { return context->IsCancelled(); }, Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Heartbeat(grpc::CallbackServerContext* context,
                                                    const HeartbeatRequest* request,
                                                    HeartbeatReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Heartbeat(*request, Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Leave(grpc::CallbackServerContext* context,
                                                const LeaveRequest* request, LeaveReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Leave(*request, Answer(reactor, reply));
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Status(grpc::CallbackServerContext* context,
                                                 const StatusRequest* /*request*/,
                                                 StatusReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  job_.Status(Answer(reactor, reply));
  return reactor;
}

grpc::ServerWriteReactor<MastersChunk>* ControlService::Masters(
    grpc::CallbackServerContext* /*context*/, const MastersRequest* /*request*/) {
  return new MastersCall(job_);
}

}  // namespace thinwire
