// The gRPC services of a server, which pass every call to a Job. Both classes are thread-safe.
#ifndef THINWIRE_SERVER_EDGE_SERVICES_H_
#define THINWIRE_SERVER_EDGE_SERVICES_H_

#include <grpcpp/grpcpp.h>

#include "proto/control.grpc.pb.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/edge/job.h"

namespace thinwire {

// Serves the calls of control.proto.
class ControlService final : public Control::CallbackService {
 public:
  // JOB must outlive every call.
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

// Serves the Exchange call of parameter_service.proto. Messages are raw bytes, so that no payload
// is copied into a protobuf string.
class DataService final
    : public ParameterService::WithRawCallbackMethod_Exchange<ParameterService::Service> {
 public:
  // JOB must outlive every call.
  explicit DataService(Job& job) : job_(job) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override;

 private:
  Job& job_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_SERVICES_H_
