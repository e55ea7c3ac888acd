// A small job for golden checksums. Plain loops compute its gradients, so its parameters depend on
// the job file alone: not on the machine, on LibTorch or on a dataset.
#ifndef THINWIRE_TESTS_GOLDENS_GOLDEN_JOB_H_
#define THINWIRE_TESTS_GOLDENS_GOLDEN_JOB_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/client.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/thread_executor.h"

namespace thinwire {

// Every golden job has this many steps, of which a test may run a part.
inline constexpr Step kGoldenSteps{16};

// Returns the job of the job file TEXT. An error fails the test.
JobSpec GoldenSpec(const std::string& text);

// Returns a matrix of ROWS times 80 values, a convolution and two vectors.
std::vector<TensorShape> GoldenTensors(int64_t rows);

// Returns the CRC-32C of the tensors' values, in their order.
uint32_t ParametersCrc(std::span<const std::vector<float>> tensors);

// One worker. Every error is a test failure. Not thread-safe.
class GoldenWorker {
 public:
  // TRANSPORT must outlive this object. STATE_DIR: as in ClientOptions.
  GoldenWorker(const JobSpec& spec, const std::vector<TensorShape>& tensors, WorkerId worker,
               Transport& transport, const std::string& state_dir = "");

  Client& client() { return *client_; }
  // Returns the next step.
  Step step() const { return step_; }

  void Join();
  // Blocks until the parameters of the next step have arrived and computes its gradient.
  void Read();
  // Pushes the gradient and blocks until all verdicts have arrived.
  void Push();

 private:
  const WorkerId worker_;
  const std::vector<TensorShape> tensors_;
  Threads threads_;
  std::unique_ptr<Client> client_;
  std::vector<std::vector<float>> gradient_;
  Step step_;
};

using GoldenWorkers = std::vector<std::unique_ptr<GoldenWorker>>;

// Trains on this thread until LAST is the next step of all WORKERS, which have joined. In modes
// with rounds, the workers push in the order of their numbers and then read; otherwise each worker
// pushes and reads before the next one. The order of all events of a shard, and with it every bit,
// is therefore fixed in every mode.
void TrainInOrder(const JobSpec& spec, const GoldenWorkers& workers, Step last);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_GOLDENS_GOLDEN_JOB_H_
