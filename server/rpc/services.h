// The gRPC services of a server, which pass every call to a Job. Every handler first checks the peer
// with CallAccess. All classes are thread-safe.
#ifndef THINWIRE_SERVER_RPC_SERVICES_H_
#define THINWIRE_SERVER_RPC_SERVICES_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/time/bandwidth_limit.h"
#include "proto/control.grpc.pb.h"
#include "proto/control_rpc.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/job/job.h"
#include "server/rpc/grpc_access.h"

namespace thinwire {

// Limits the number of open calls of one kind.
class CallLimit {
 public:
  // KIND is the plural for messages: "Exchange streams".
  CallLimit(std::string kind, uint32_t most) : kind_(std::move(kind)), most_(most) {}

  // Counts a call until the token is released. Errors: ResourceExhausted if too many calls are
  // open.
  absl::StatusOr<std::shared_ptr<const void>> Open();
  // Returns the number and the kind of the open calls: "3 Exchange streams".
  std::string Count() const;

 private:
  const std::string kind_;
  const uint32_t most_;
  // Every token shares ownership, because a job may release tokens after the services are gone.
  const std::shared_ptr<std::atomic<uint32_t>> open_count_ =
      std::make_shared<std::atomic<uint32_t>>(0);
};

// The limits of a server for a job with WORKER_COUNT workers. A worker has one stream or one Join
// open; after a lost connection the server may still have the old one.
struct CallLimits {
  explicit CallLimits(uint32_t worker_count)
      : streams("Exchange streams", 64 + 4 * worker_count), joins("Joins", 64 + 4 * worker_count) {}

  CallLimit streams;
  CallLimit joins;
  CallLimit reports{"calls of Status and Masters", 16};
  CallLimit others{"other calls", std::numeric_limits<uint32_t>::max()};

  // Returns the numbers of open calls, for a message.
  std::string Count() const;
};

// Serves the calls of control.proto. Join receives raw bytes, so that bytes which are not a
// JoinRequest get an answer in words.
class ControlService final : public Control::WithRawCallbackMethod_Join<Control::CallbackService> {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  // JOB, LIMITS and ACCESS must outlive every call. The chunks of Masters keep the rate of UPLINK;
  // null: no limit.
  ControlService(Job& job, CallLimits& limits, const CallAccess& access,
                 std::shared_ptr<BandwidthLimit> uplink)
      : job_(job), limits_(limits), access_(access), uplink_(std::move(uplink)) {}

  Reactor* Join(Context* context, const grpc::ByteBuffer* request,
                grpc::ByteBuffer* reply) override;
  // The requests that a job performs without further checks, one row per RPC.
  Reactor* Admit(Context* context, const AdmitRequest* request, AdmitReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* Follow(Context* context, const FollowRequest* request, FollowReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* Rollback(Context* context, const RollbackRequest* request,
                    RollbackReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* Sum(Context* context, const SumRequest* request, SumReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* Scale(Context* context, const ScaleRequest* request, ScaleReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* SetMode(Context* context, const SetModeRequest* request, SetModeReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* Drain(Context* context, const DrainRequest* request, DrainReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* SaveCheckpoint(Context* context, const SaveCheckpointRequest* request,
                          SaveCheckpointReply* reply) override {
    return Pass(context, request, reply);
  }
  Reactor* RestoreCheckpoint(Context* context, const RestoreCheckpointRequest* request,
                             RestoreCheckpointReply* reply) override {
    return Pass(context, request, reply);
  }

  Reactor* ClaimNumber(Context* context, const ClaimNumberRequest* request,
                       ClaimNumberReply* reply) override {
    return Pass(context, request, reply);
  }

  Reactor* Heartbeat(Context* context, const HeartbeatRequest* request,
                     HeartbeatReply* reply) override;
  Reactor* Leave(Context* context, const LeaveRequest* request, LeaveReply* reply) override;
  Reactor* Status(Context* context, const StatusRequest* request, StatusReply* reply) override;
  grpc::ServerWriteReactor<MastersChunk>* Masters(grpc::CallbackServerContext* context,
                                                  const MastersRequest* request) override;

 private:
  // Checks the peer, then passes REQUEST to the job.
  template <typename Request>
  Reactor* Pass(Context* context, const Request* request, ReplyTo<Request>* reply);

  Job& job_;
  CallLimits& limits_;
  const CallAccess& access_;
  const std::shared_ptr<BandwidthLimit> uplink_;
};

// Serves the Exchange call of parameter_service.proto. Messages are raw bytes, so that no payload
// is copied into a protobuf string.
class DataService final
    : public ParameterService::WithRawCallbackMethod_Exchange<ParameterService::Service> {
 public:
  // JOB, LIMITS and ACCESS must outlive every call. The messages keep the rates of BANDWIDTH.
  DataService(Job& job, CallLimits& limits, const CallAccess& access, Bandwidth bandwidth)
      : job_(job), limits_(limits), access_(access), bandwidth_(std::move(bandwidth)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override;

 private:
  Job& job_;
  CallLimits& limits_;
  const CallAccess& access_;
  const Bandwidth bandwidth_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_SERVICES_H_
