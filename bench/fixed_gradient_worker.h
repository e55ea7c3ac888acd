// FixedGradientWorker is a worker without a model: it pushes a constant gradient and receives the
// parameters, over gRPC.
#ifndef THINWIRE_BENCH_FIXED_GRADIENT_WORKER_H_
#define THINWIRE_BENCH_FIXED_GRADIENT_WORKER_H_

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/options/client_options.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/memory/huge_page_arena.h"
#include "common/model/partition.h"
#include "common/time/thread_executor.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// Not thread-safe.
class FixedGradientWorker {
 public:
  // Joins the server at ADDRESS with OPTIONS, whose memory it replaces, as a worker of a model of
  // TENSORS.
  FixedGradientWorker(const std::string& address, ClientOptions options,
                      const std::vector<TensorShape>& tensors,
                      const Credentials& credentials = Credentials());

  // Pushes all gradients, the last tensor first, as in a backward pass, and blocks until all
  // parameters of the next step have arrived.
  void Step();

 private:
  HugePageArena arena_;
  Threads threads_;
  GrpcTransport transport_;
  std::vector<std::shared_ptr<const std::vector<float>>> gradients_;
  std::unique_ptr<Client> client_;
  thinwire::Step step_;
};

}  // namespace thinwire

#endif  // THINWIRE_BENCH_FIXED_GRADIENT_WORKER_H_
