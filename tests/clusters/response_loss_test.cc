// Tests promise 2: verdicts that are lost on the way change nothing. Each loss breaks a stream
// after the server has judged a push and before the worker has received the verdict.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/testing/in_process_transport.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

constexpr uint32_t kWorkers = 2;
constexpr uint64_t kSteps = 250;
constexpr uint64_t kLosses = kSteps * kWorkers * kServers;

StatusReply StatusOf(Job& job) {
  StatusReply status;
  absl::Notification told;
  job.Call(StatusRequest(), [&](absl::StatusOr<StatusReply> reply) {
    if (reply.ok()) status = *std::move(reply);
    told.Notify();
  });
  told.WaitForNotification();
  return status;
}

TEST(ResponseLossTest, Promise2AThousandLostVerdictsChangeNothing) {
  static_assert(kLosses == 1000);
  SmallCluster cluster(Rule::Sync(kWorkers));
  std::vector<std::unique_ptr<SmallWorker>> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.push_back(std::make_unique<SmallWorker>(cluster, w));
    EXPECT_EQ(workers[w]->Join(), Step{0});
  }
  Tensors replay = InitialValues();
  for (Step step{0}; step < Step{kSteps}; step = step + 1) {
    for (uint32_t w = 0; w < kWorkers; ++w) {
      // Afterwards, the next message of each server has the verdicts of this step.
      ASSERT_TRUE(workers[w]->client().WaitAll().ok());
      for (uint32_t s = 0; s < kServers; ++s) workers[w]->transport().LoseReplies(ServerId{s}, 1);
      const Tensors gradient = Gradient(w, step.value);
      workers[w]->Push(step, gradient);
      // Both workers have the same number of examples.
      Subtract(replay, kRate / kWorkers, gradient);
    }
    for (const auto& worker : workers) ASSERT_EQ(worker->Next(), step + 1);
  }

  EXPECT_EQ(cluster.Masters(), replay);
  uint64_t accepted = 0, reconnects = 0, repeated = 0;
  for (const auto& worker : workers) {
    const WorkerCounters counters = worker->client().counters();
    accepted += counters.accepted_pushes();
    reconnects += counters.reconnects();
    repeated += counters.repeated_pushes();
    EXPECT_EQ(counters.late_pushes(), 0);
  }
  EXPECT_EQ(reconnects, kLosses);
  EXPECT_GE(repeated, kLosses) << "every lost verdict was sent again";
  const uint64_t pushes = kSteps * kWorkers * workers[0]->client().partition().shard_count();
  EXPECT_EQ(accepted, pushes);
  uint64_t counted = 0;
  for (uint32_t s = 0; s < kServers; ++s) counted += StatusOf(cluster.job(s)).accepted_pushes();
  EXPECT_EQ(counted, pushes) << "the servers count each push once";
}

}  // namespace
}  // namespace thinwire
