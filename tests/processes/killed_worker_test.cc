// Tests with real processes that kill -9 of a worker in mode async loses no value of a shard whose
// residual is restored, and that other shards are counted: the values that the servers have applied
// and the restored residual are together the sum of all gradients.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "client/transport/grpc_transport.h"
#include "common/time/thread_executor.h"
#include "tests/processes/daemons.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

constexpr char kJob[] = R"(
  name: "train"
  servers: 2
  consistency { mode: async workers: 1 lease_seconds: 1 }
  optimization { optimizer: sgd learning_rate: 0.5 schedule: constant }
)";

class KilledWorkerTest : public testing::Test {
 protected:
  // Trains for about TIME, kills the worker, and counts the shards of the next process.
  void KillAfter(absl::Duration time) {
    Daemons daemons;
    const std::string state_dir = daemons.folder() + "/state";
    std::vector<std::string> addresses(2, "127.0.0.1:0");
    for (const uint32_t server : {1u, 0u}) daemons.StartServer(server, kJob, addresses);
    daemons.Start("worker", "tests/processes/killed_worker", {state_dir, addresses[0], addresses[1]});
    const pid_t worker = FindProcess({"killed_worker ", state_dir});
    ASSERT_GT(worker, 0);
    while (!std::filesystem::exists(state_dir + "/worker-0/live")) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    absl::SleepFor(time);
    kill(worker, SIGKILL);
    EXPECT_EQ(daemons.WaitForEnd("worker").exit.signal, SIGKILL);

    GrpcTransport transport(addresses);
    Threads threads;
    const auto client =
        *Client::Make(OptionsOfKilledWorker(state_dir), SmallModel(), transport, threads);
    const Tensors initial = InitialValues();
    const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
    const absl::StatusOr<Step> next = client->Join(spans);
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(client->state().Save().ok());
    const Tensors residual = ReadResidualTensors(state_dir, WorkerId{0}, client->partition());
    const auto masters = client->masters().Read();
    ASSERT_TRUE(masters.ok()) << masters.status();
    // The servers have finished the steps before this one, or one step less.
    Sums sums(next->value);
    for (uint32_t s = 0; s < client->partition().shard_count(); ++s) {
      const bool whole = sums.Match(client->partition().segments(ShardId{s}), *masters, residual);
      ++(whole ? whole_count_ : lost_count_);
    }
    dropped_count_ += client->counters().dropped_residuals();
    EXPECT_TRUE(client->Leave().ok());
  }

  // The sums of the gradients of all steps before NEXT and before NEXT - 1.
  struct Sums {
    explicit Sums(uint64_t next) {
      for (uint64_t step = 0; step < next; ++step) {
        if (step + 1 == next) before = all;
        Subtract(all, -1, Gradient(0, step));
      }
    }
    // Returns whether the applied values and RESIDUAL are one of the sums, at all SEGMENTS.
    bool Match(const std::vector<Segment>& segments, const Tensors& masters,
               const Tensors& residual) const {
      const Tensors initial = InitialValues();
      const auto matches = [&](const Tensors& sum) {
        for (const Segment& segment : segments) {
          const uint32_t t = segment.tensor;
          for (uint64_t i = segment.offset; i < segment.offset + segment.count; ++i) {
            const float applied = (initial[t][i] - masters[t][i]) / kRate;
            if (applied + residual[t][i] != sum[t][i]) return false;
          }
        }
        return true;
      };
      return matches(all) || matches(before);
    }
    Tensors all = Zeros();
    Tensors before = Zeros();
  };

  uint64_t whole_count_ = 0;
  uint64_t lost_count_ = 0;
  uint64_t dropped_count_ = 0;
};

TEST_F(KilledWorkerTest, NoValueOfARestoredShardIsLost) {
  for (const int milliseconds : {20, 100, 230, 410}) {
    KillAfter(absl::Milliseconds(milliseconds));
  }
  EXPECT_GT(whole_count_, 0u);
  EXPECT_EQ(lost_count_, dropped_count_);
}

}  // namespace
}  // namespace thinwire
