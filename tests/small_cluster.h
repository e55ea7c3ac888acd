// SmallCluster: two real jobs and real clients in one process, with a model small enough to compute
// beside them. Its values are small binary fractions, so that sums are exact in any order.
#ifndef THINWIRE_TESTS_SMALL_CLUSTER_H_
#define THINWIRE_TESTS_SMALL_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/transport/in_process_transport.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "server/edge/job.h"
#include "tests/job_server.h"

namespace thinwire {

using Tensors = std::vector<std::vector<float>>;

inline constexpr uint32_t kServers = 2;
inline constexpr uint32_t kExamples = 16;
inline constexpr float kRate = 0.5;  // of plain SGD
inline constexpr absl::Duration kLease = absl::Seconds(10);

Tensors InitialValues();
// What WORKER finds at STEP: values from -2 to 2.
Tensors Gradient(uint32_t worker, uint64_t step);
// from -= scale * what
void Subtract(Tensors& from, float scale, const Tensors& what);

// The servers. Thread-safe.
class SmallCluster {
 public:
  explicit SmallCluster(const Rule& rule, std::optional<PublishOptions> publish = std::nullopt,
                        const SparseUpdateSpec& sparse_updates = {});

  Job& job(uint32_t server) { return *jobs_[server]; }
  ManualClock& clock() { return clock_; }

  // What the servers hold.
  Tensors Masters();
  // Returns when every server has heard WORKER at this time.
  void AwaitHeard(uint32_t worker);
  // Every server does what time asks for.
  void Tick();

 private:
  ManualClock clock_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// One worker's process: its client, and a wire of its own. What fails, fails the test. Not
// thread-safe; it ends before its cluster.
class SmallWorker {
 public:
  SmallWorker(SmallCluster& cluster, uint32_t number, ClientOptions options = {},
              const Device* device = nullptr);

  Client& client() { return *client_; }

  Step Join();
  // The half of a step up to the last push, and the half that waits for the verdicts.
  void Push(Step step, const Tensors& gradient);
  Step Next();
  // Steps from Join to LAST; with FAULTS loses replies, repeats frames and breaks streams.
  void Train(Step last, bool faults);
  // The replica, when it has come.
  Tensors Parameters();

 private:
  const uint32_t number_;
  std::vector<std::unique_ptr<JobServer>> servers_;
  std::unique_ptr<InProcessTransport> transport_;
  std::unique_ptr<Client> client_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_SMALL_CLUSTER_H_
