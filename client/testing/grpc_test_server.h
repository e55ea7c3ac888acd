// GrpcTestServer: serves an InProcessServer, such as a FakeServer, over gRPC.
#ifndef THINWIRE_CLIENT_TESTING_GRPC_TEST_SERVER_H_
#define THINWIRE_CLIENT_TESTING_GRPC_TEST_SERVER_H_

#include <memory>

#include "client/testing/in_process_transport.h"

namespace thinwire {

// Thread-safe.
class GrpcTestServer {
 public:
  // Listens on PORT of the loopback interface; 0: a free port. SERVER must outlive this object.
  explicit GrpcTestServer(InProcessServer& server, int port = 0);
  // Breaks all connections, as the end of a server's process does.
  ~GrpcTestServer();

  // Returns the port; 0 if the server could not listen.
  int port() const;

 private:
  class Services;
  const std::unique_ptr<Services> services_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TESTING_GRPC_TEST_SERVER_H_
