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

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/time/bandwidth_limit.h"
#include "proto/control.grpc.pb.h"
#include "proto/control_rpc.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/job/job.h"
#include "server/rpc/grpc_access.h"

namespace thinwire {

// Limits the number of open calls of one kind, and waits for their end.
class CallLimit {
 public:
  // KIND is the plural for messages: "Exchange streams".
  CallLimit(std::string kind, uint32_t most) : kind_(std::move(kind)), most_(most) {}

  // Counts a call until the token is released. Errors: ResourceExhausted if too many calls are
  // open.
  absl::StatusOr<std::shared_ptr<const void>> Open();
  // Returns the number and the kind of the open calls: "3 Exchange streams".
  std::string Count() const;
  // Blocks until no call is open, or until DEADLINE. Returns whether none is open.
  bool AwaitNone(absl::Time deadline) const;

 private:
  struct OpenCalls {
    absl::Mutex mu;
    uint32_t count ABSL_GUARDED_BY(mu) = 0;
  };

  const std::string kind_;
  const uint32_t most_;
  // Every token shares ownership, because a job may release tokens after the services are gone.
  const std::shared_ptr<OpenCalls> open_ = std::make_shared<OpenCalls>();
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
  // Blocks until no call is open, or until DEADLINE. Returns whether none is open.
  bool AwaitNone(absl::Time deadline) const;
};

// The job to which the services pass their calls. A server that goes back to a snapshot or a
// checkpoint makes its job anew, and keeps its port and its connections.
class ServedJob {
 public:
  // A call of the job, which exists until the token is released.
  struct Call {
    Job* job = nullptr;
    std::shared_ptr<const void> token;
  };

  // JOB must outlive every call, or the return of Suspend.
  explicit ServedJob(Job& job) : limits_(job.worker_count()), job_(&job) {}

  const CallLimits& limits() const { return limits_; }
  // Begins a call of the kind LIMIT, a member of limits(). Errors: ResourceExhausted if too many calls
  // are open; Unavailable while there is no job.
  absl::StatusOr<Call> Begin(CallLimit CallLimits::*kind);
  // Begin fails from now on.
  void Suspend() { job_ = nullptr; }
  // Passes later calls to JOB. REQUIRES: no call of the last job is open.
  void Resume(Job& job) { job_ = &job; }

 private:
  CallLimits limits_;
  std::atomic<Job*> job_;
};

// Serves the calls of control.proto. Join receives raw bytes, so that bytes which are not a
// JoinRequest get an answer in words.
class ControlService final : public Control::WithRawCallbackMethod_Join<Control::CallbackService> {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  // JOB and ACCESS must outlive every call. The chunks of Masters keep the rate of UPLINK; null: no
  // limit.
  ControlService(ServedJob& job, const CallAccess& access, std::shared_ptr<BandwidthLimit> uplink)
      : job_(job), access_(access), uplink_(std::move(uplink)) {}

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

  ServedJob& job_;
  const CallAccess& access_;
  const std::shared_ptr<BandwidthLimit> uplink_;
};

// Serves the Exchange call of parameter_service.proto. Messages are raw bytes, so that no payload
// is copied into a protobuf string.
class DataService final
    : public ParameterService::WithRawCallbackMethod_Exchange<ParameterService::Service> {
 public:
  // JOB and ACCESS must outlive every call. The messages keep the rates of BANDWIDTH.
  DataService(ServedJob& job, const CallAccess& access, Bandwidth bandwidth)
      : job_(job), access_(access), bandwidth_(std::move(bandwidth)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override;

 private:
  ServedJob& job_;
  const CallAccess& access_;
  const Bandwidth bandwidth_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_SERVICES_H_
