// DataService: the Exchange call, a skin between gRPC's callbacks and a Session. Messages are raw
// bytes here, so that no payload passes through a protobuf string.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_DATA_SERVICE_H_
#define THINWIRE_SERVER_EDGE_DATA_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "proto/parameter_service.grpc.pb.h"
#include "server/edge/job.h"

namespace thinwire {

class DataService final
    : public ParameterService::WithRawCallbackMethod_Exchange<ParameterService::Service> {
 public:
  // JOB outlives every call.
  explicit DataService(Job& job) : job_(job) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override;

 private:
  Job& job_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_DATA_SERVICE_H_
