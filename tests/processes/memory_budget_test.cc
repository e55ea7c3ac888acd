// Tests promise 10: the memory of a real server process under the load of 64 workers.
#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/rpc/server_calls.h"
#include "client/client.h"
#include "client/options/client_options.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/time/thread_executor.h"
#include "config/job_text.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

constexpr uint32_t kWorkers = 64;
constexpr uint64_t kSteps = 2;
constexpr uint64_t kBudgetMiB = 256;
// Four shards, each of which is pushed in one message of 1 MiB.
constexpr uint32_t kShards = 4;
const std::vector<TensorShape> kModel = {{"w", {512, 2048}}};

// With the event log, each stream may hold four messages: 256 MiB of all streams. The pushes of a
// step are folded in the order of the workers, so that most of them wait.
constexpr char kJob[] =
    "name: \"budget\" silence_seconds: 120 consistency { mode: sync ordered_fold: true "
    "workers: 64 lease_seconds: 60 start_timeout_seconds: 120 } "
    "compression { push: fp32 pull: fp32 } recovery { durability: log }";

// Returns the largest resident memory that the process has had, in MiB.
uint64_t PeakMiB(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; in >> word;) {
    uint64_t kib = 0;
    if (word == "VmHWM:" && in >> kib) return kib >> 10;
  }
  return 0;
}

// Trains WORKER for kSteps steps with gradients of ones and returns its counters.
absl::StatusOr<WorkerCounters> Train(uint32_t worker, const std::string& address,
                                     const JobConfig& config) {
  GrpcTransport transport({address});
  ClientOptions options;
  options.job = "budget";
  options.config = config;
  options.worker = WorkerId{worker};
  options.worker_count = kWorkers;
  options.shard_size = kModel[0].value_count() / kShards;
  options.start_timeout = absl::Minutes(2);
  options.silence = absl::Minutes(2);
  Threads threads;
  ASSIGN_OR_RETURN(const auto client, Client::Make(options, kModel, transport, threads));
  const auto ones = std::make_shared<const std::vector<float>>(kModel[0].value_count(), 1.0f);
  const std::vector<std::span<const float>> initial = {*ones};
  ASSIGN_OR_RETURN(Step step, client->Join(initial));
  while (step < Step{kSteps}) {
    client->BeginStep(step, 1);
    RETURN_IF_ERROR(client->WaitAll());
    client->Ready(0, *ones, ones);
    RETURN_IF_ERROR(client->EndStep());
    ASSIGN_OR_RETURN(step, client->NextStep());
  }
  RETURN_IF_ERROR(client->Leave());
  return client->counters();
}

TEST(MemoryBudgetTest, Promise10SixtyFourWorkersStayWithinTheBudget) {
  Daemons daemons;
  const std::string state = daemons.folder() + "/state";
  const std::string address = daemons.StartServer(
      "server", kJob, {"--state_dir", state, "--memory_budget", absl::StrCat(kBudgetMiB, "MB")});
  ASSERT_NE(address, "");
  const auto job = ParseJobText(kJob, "job");
  ASSERT_TRUE(job.ok()) << job.status();

  std::vector<absl::StatusOr<WorkerCounters>> results(kWorkers);
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] { results[w] = Train(w, address, job->config); });
  }
  for (std::thread& worker : workers) worker.join();

  for (const absl::StatusOr<WorkerCounters>& counters : results) {
    ASSERT_TRUE(counters.ok()) << counters.status();
    EXPECT_EQ(counters->reconnects(), 0);
    EXPECT_EQ(counters->accepted_pushes(), kSteps * kShards);
  }
  const auto statuses = ServerCalls({address}).Status(absl::Seconds(30));
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  const StatusReply& status = statuses->front();
  EXPECT_EQ(status.accepted_pushes(), kWorkers * kSteps * kShards);
  EXPECT_EQ(status.buffered_bytes(), 0);
  const uint64_t peak = PeakMiB(FindProcess({"server", state}));
  RecordProperty("peak_mib", static_cast<int>(peak));
  std::printf("peak resident memory %lu MiB of a budget of %lu MiB\n", peak, kBudgetMiB);
  EXPECT_GT(peak, 0);
  EXPECT_LE(peak, kBudgetMiB * 115 / 100);
}

}  // namespace
}  // namespace thinwire
