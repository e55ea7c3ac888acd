// ControlService: the calls of control.proto, a skin between gRPC's callbacks and a Job.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_CONTROL_SERVICE_H_
#define THINWIRE_SERVER_EDGE_CONTROL_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "proto/control.grpc.pb.h"
#include "server/edge/job.h"

namespace thinwire {

class ControlService final : public Control::CallbackService {
 public:
  // JOB outlives every call.
  explicit ControlService(Job& job) : job_(job) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const JoinRequest* request,
                                 JoinReply* reply) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const HeartbeatRequest* request,
                                      HeartbeatReply* reply) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const LeaveRequest* request,
                                  LeaveReply* reply) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const StatusRequest* request, StatusReply* reply) override;
  grpc::ServerWriteReactor<MastersChunk>* Masters(grpc::CallbackServerContext* context,
                                                  const MastersRequest* request) override;

 private:
  Job& job_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CONTROL_SERVICE_H_
