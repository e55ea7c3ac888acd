// A worker for killed_worker_test: pushes the gradients of tests/clusters/small_cluster.h to two servers
// until it is killed, and prints a line after each step.
//
//   killed_worker STATE_DIR ADDRESS ADDRESS
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/transport/grpc_transport.h"
#include "common/time/thread_executor.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

absl::Status Train(const std::string& state_dir, const std::vector<std::string>& addresses) {
  GrpcTransport transport(addresses);
  Threads threads;
  auto client = Client::Make(OptionsOfKilledWorker(state_dir), SmallModel(), transport, threads);
  if (!client.ok()) return client.status();
  const Tensors initial = InitialValues();
  const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
  absl::StatusOr<Step> step = (*client)->Join(spans);
  while (step.ok()) {
    (*client)->BeginStep(*step, kExamples);
    if (const absl::Status status = (*client)->WaitAll(); !status.ok()) return status;
    const Tensors gradient = Gradient(0, step->value);
    for (uint32_t t = gradient.size(); t-- > 0;) (*client)->Ready(t, gradient[t]);
    if (const absl::Status status = (*client)->EndStep(); !status.ok()) return status;
    step = (*client)->NextStep();
    std::printf("step\n");
    std::fflush(stdout);
  }
  return step.status();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const absl::Status status = thinwire::Train(argv[1], {argv[2], argv[3]});
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 69;
}
