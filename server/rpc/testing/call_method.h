// CallMethod calls a method of a server by its name, with the bytes of a request.
#ifndef THINWIRE_SERVER_RPC_TESTING_CALL_METHOD_H_
#define THINWIRE_SERVER_RPC_TESTING_CALL_METHOD_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

namespace thinwire {

// The result of a call: its status, or the first message of the reply.
struct MethodReply {
  grpc::Status status;
  std::optional<std::string> message;
};

// Calls METHOD, such as "/thinwire.Control/Join", with one message, and shows TOKEN; "": no token.
// Works for every kind of method. Cancels the call after the first message of the reply.
MethodReply CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& message = "", const std::string& token = "");

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_TESTING_CALL_METHOD_H_
