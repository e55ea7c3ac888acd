// SmallCluster runs the jobs of two real servers in one process. SmallWorker runs a real client.
// The model is small, so tests can compute the expected parameters. All parameters and gradients
// are small binary fractions; sums are therefore exact in any order.
#ifndef THINWIRE_TESTS_CLUSTERS_SMALL_CLUSTER_H_
#define THINWIRE_TESTS_CLUSTERS_SMALL_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/testing/in_process_transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "tests/clusters/job_server.h"

namespace thinwire {

using Tensors = std::vector<std::vector<float>>;

inline constexpr uint32_t kServers = 2;
inline constexpr uint32_t kExamples = 16;
inline constexpr float kRate = 0.5;  // learning rate of plain SGD
inline constexpr absl::Duration kLease = absl::Seconds(10);

// Returns the tensors of the model. Each matrix has its own shards; the vectors share one shard.
std::vector<TensorShape> SmallModel();
// Returns the options of worker 0 of a job with two servers: top-k with its state in STATE_DIR.
ClientOptions OptionsOfKilledWorker(const std::string& state_dir);
Tensors InitialValues();
// Returns tensors with the shapes of InitialValues(), filled with 0.
Tensors Zeros();
// Returns the gradient of WORKER at STEP, with values from -2 to 2.
Tensors Gradient(uint32_t worker, uint64_t step);
// Subtracts SCALE * VALUES from TENSORS.
void Subtract(Tensors& tensors, float scale, const Tensors& values);
// Returns WORKER's residuals from the newest file in STATE_DIR. An unreadable file is a test
// failure.
Tensors ReadResidualTensors(const std::string& state_dir, WorkerId worker,
                            const Partition& partition);

// The jobs of two servers with a manual clock. Thread-safe.
class SmallCluster {
 public:
  explicit SmallCluster(const Rule& rule, std::optional<PublishOptions> publish = std::nullopt,
                        const SparseUpdateSpec& sparse_updates = {}, RunId run = RunId{1},
                        std::optional<GrowthSpec> growth = std::nullopt);

  Job& job(uint32_t server) { return *jobs_[server]; }
  ManualClock& clock() { return clock_; }

  // Returns the number of bytes of first values that the servers have received.
  uint64_t SeedBytes();
  // Returns the servers' exact parameters.
  Tensors Masters();
  // Blocks until every server has received a message from WORKER at the current time of clock().
  void AwaitHeard(uint32_t worker);
  // Runs the time-dependent work of every server, such as expiring leases.
  void Tick();

 private:
  ManualClock clock_;
  JobThreads threads_{2};
  std::vector<std::unique_ptr<Job>> jobs_;
};

// One worker: a client with its own transport. Every error is a test failure. Not thread-safe. The
// cluster must outlive this object.
class SmallWorker {
 public:
  SmallWorker(SmallCluster& cluster, uint32_t number, ClientOptions options = {},
              const Device* device = nullptr);

  Client& client() { return *client_; }
  InProcessTransport& transport() { return *transport_; }

  Step Join();
  // Starts STEP and pushes GRADIENT.
  void Push(Step step, const Tensors& gradient);
  // Blocks until all verdicts have arrived and returns the next step.
  Step Next();
  // Joins and trains until step LAST. With FAULTS, the transport loses replies, repeats frames and
  // breaks streams.
  void Train(Step last, bool faults);
  // Blocks until all parameters of the current step have arrived and returns these parameters.
  Tensors Parameters();

 private:
  const uint32_t number_;
  std::vector<std::unique_ptr<JobServer>> servers_;
  std::unique_ptr<InProcessTransport> transport_;
  Threads threads_;
  std::unique_ptr<Client> client_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_CLUSTERS_SMALL_CLUSTER_H_
