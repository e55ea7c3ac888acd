// Real clients against real jobs in one process: what comes out equals a plain computation,
// whatever the wire did to the messages. Values are small binary fractions, so that sums are exact
// in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/in_process_transport.h"
#include "common/clock.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/rule.h"
#include "server/core/schedule.h"
#include "server/edge/job.h"
#include "tests/job_server.h"

namespace thinwire {
namespace {

using Tensors = std::vector<std::vector<float>>;

constexpr uint32_t kServers = 2;
constexpr uint32_t kExamples = 16;
constexpr float kRate = 0.5;
constexpr absl::Duration kLease = absl::Seconds(10);

std::vector<TensorShape> Model() {
  return {{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 60}}, {"b2", {60}}};
}

// A tensor for each of the model's, every value a function of its place.
Tensors Fill(const std::function<float(size_t)>& value) {
  Tensors tensors;
  for (const TensorShape& t : Model()) {
    std::vector<float>& values = tensors.emplace_back(t.value_count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  }
  return tensors;
}

Tensors Initial() {
  return Fill([](size_t i) { return 0.25f * static_cast<float>(i % 13); });
}

// What WORKER finds at STEP.
Tensors Gradient(uint32_t worker, uint64_t step) {
  return Fill([=](size_t i) {
    return 0.125f * static_cast<float>((i * 7 + worker * 3 + step) % 32) - 2.0f;
  });
}

void Subtract(Tensors& from, float scale, const Tensors& what) {
  for (size_t t = 0; t < from.size(); ++t) {
    for (size_t i = 0; i < from[t].size(); ++i) from[t][i] -= scale * what[t][i];
  }
}

class Cluster {
 public:
  explicit Cluster(const Rule& rule) {
    for (uint32_t s = 0; s < kServers; ++s) {
      JobOptions options;
      options.server = ServerId{s};
      options.server_count = kServers;
      options.rule = rule;
      options.lease = kLease;
      options.epoch = Epoch{100 + s};
      options.thread_count = 2;
      jobs_.push_back(std::make_unique<Job>(options, *MakeOptimizer({.name = "sgd"}),
                                            *Schedule::Make({.learning_rate = kRate}), clock_));
    }
  }

  Job& job(uint32_t server) { return *jobs_[server]; }
  ManualClock& clock() { return clock_; }

 private:
  ManualClock clock_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// One worker's process: its client, and a wire of its own.
class Worker {
 public:
  Worker(Cluster& cluster, uint32_t number, ClientOptions options = {}) : number_(number) {
    for (uint32_t s = 0; s < kServers; ++s) {
      servers_.push_back(std::make_unique<JobServer>(cluster.job(s)));
    }
    transport_ = std::make_unique<InProcessTransport>(
        std::vector<InProcessServer*>{servers_[0].get(), servers_[1].get()});
    options.worker = WorkerId{number};
    options.server_count = kServers;
    options.shard_size = 4096;
    options.silence = absl::Minutes(2);
    options.heartbeat_interval = absl::Milliseconds(20);
    client_ = *Client::Make(options, Model(), *transport_);
  }

  Client& client() { return *client_; }
  InProcessTransport& transport() { return *transport_; }

  Step Join() {
    const Tensors initial = Initial();
    const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
    const absl::StatusOr<Step> step = client_->Join(spans);
    EXPECT_TRUE(step.ok()) << step.status();
    return *step;
  }

  // The half of a step up to the last push, and the half that waits for the verdicts.
  void Push(Step step, const Tensors& gradient) {
    client_->BeginStep(step, kExamples);
    EXPECT_TRUE(client_->WaitAll().ok());
    for (uint32_t t = gradient.size(); t-- > 0;) client_->Ready(t, gradient[t]);
    EXPECT_TRUE(client_->EndStep().ok());
  }
  Step Next() {
    const absl::StatusOr<Step> next = client_->NextStep();
    EXPECT_TRUE(next.ok()) << next.status();
    return *next;
  }

  Tensors Parameters() {
    EXPECT_TRUE(client_->WaitAll().ok());
    Tensors parameters;
    for (uint32_t t = 0; t < Model().size(); ++t) {
      const std::span<float> values = client_->replica(t);
      parameters.emplace_back(values.begin(), values.end());
    }
    return parameters;
  }

  // Steps from Join to LAST; loses replies and repeats frames on the way if FAULTS.
  void Train(Step last, bool faults) {
    Step step = Join();
    while (step < last) {
      const ServerId server{static_cast<uint32_t>((step.value + number_) % kServers)};
      if (faults && step.value % 2 == 0) transport_->LoseReplies(server, 1);
      if (faults) transport_->RepeatFrames(server, 2);
      Push(step, Gradient(number_, step.value));
      if (faults && step.value % 3 == 0) transport_->DropStreams(server);
      step = Next();
    }
  }

 private:
  const uint32_t number_;
  std::vector<std::unique_ptr<JobServer>> servers_;
  std::unique_ptr<InProcessTransport> transport_;
  std::unique_ptr<Client> client_;
};

// The masters, joined by what a Job says of its shards.
Tensors Masters(Cluster& cluster) {
  Tensors tensors = Initial();
  for (uint32_t s = 0; s < kServers; ++s) {
    for (size_t place = 0;; ++place) {
      std::vector<MastersChunk> chunks;
      absl::Notification told;
      cluster.job(s).Masters(place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
        EXPECT_TRUE(reply.ok()) << reply.status();
        if (reply.ok()) chunks = *std::move(reply);
        told.Notify();
      });
      told.WaitForNotification();
      if (chunks.empty()) break;
      for (const MastersChunk& chunk : chunks) {
        for (size_t t = 0; t < tensors.size(); ++t) {
          if (Model()[t].name != chunk.tensor()) continue;
          memcpy(tensors[t].data() + chunk.offset(), chunk.values().data(), chunk.values().size());
        }
      }
    }
  }
  return tensors;
}

struct Mode {
  std::string name;
  Rule rule;
  bool faults = false;
};

class EveryPushCountsTest : public ::testing::TestWithParam<Mode> {};

// In sync a round's update is the mean; without rounds each push is an update of its own.
TEST_P(EveryPushCountsTest, FinalParametersEqualAPlainComputation) {
  constexpr uint32_t kWorkers = 2;
  constexpr Step kLast{12};
  Cluster cluster(GetParam().rule);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) workers.push_back(std::make_unique<Worker>(cluster, w));
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&worker] { worker->Train(kLast, GetParam().faults); });
  }
  for (std::thread& thread : threads) thread.join();
  // A worker that leaves has nothing open; the last one's going folds what is left.
  const bool sync = GetParam().rule.fold == Fold::kRound;
  if (sync) {
    EXPECT_EQ(workers[0]->Parameters(), workers[1]->Parameters());
  }
  for (auto& worker : workers) EXPECT_TRUE(worker->client().Leave().ok());

  Tensors expected = Initial();
  for (uint32_t w = 0; w < kWorkers; ++w) {
    for (uint64_t s = 0; s < kLast.value; ++s) {
      Subtract(expected, sync ? kRate / kWorkers : kRate, Gradient(w, s));
    }
  }
  EXPECT_EQ(Masters(cluster), expected);
  for (auto& worker : workers) {
    const ClientStatistics statistics = worker->client().statistics();
    EXPECT_EQ(statistics.accepted_pushes, kLast.value * worker->client().partition().shard_count());
    EXPECT_EQ(statistics.late_pushes, 0u);
    if (GetParam().faults) {
      EXPECT_GT(statistics.reconnects, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, EveryPushCountsTest,
    ::testing::Values(Mode{"Sync", Rule::Sync(2)}, Mode{"SyncOrdered", Rule::Sync(2, true)},
                      Mode{"SyncFaults", Rule::Sync(2), true}, Mode{"Ssp", Rule::Ssp(2, 1)},
                      Mode{"SspFaults", Rule::Ssp(2, 1), true}, Mode{"Async", Rule::Async(2)},
                      Mode{"AsyncFaults", Rule::Async(2), true}),
    [](const auto& test) { return test.param.name; });

// Worker 2 comes too late to six rounds, and first to the seventh: its six lost gradients come back
// with it, and the mean counts their examples.
TEST(BackupTest, AStragglersMassComesBackWithItsExamples) {
  constexpr uint64_t kRounds = 6;
  Cluster cluster(Rule::Backup(3, 1));
  Worker a(cluster, 0), b(cluster, 1), late(cluster, 2);
  Step step = a.Join();
  b.Join();
  Step late_step = late.Join();
  Tensors expected = Initial();
  for (; step.value < kRounds; ++step) {
    a.Push(step, Gradient(0, step.value));
    b.Push(step, Gradient(1, step.value));
    ASSERT_EQ(a.Next(), step + 1);
    ASSERT_EQ(b.Next(), step + 1);
    ASSERT_EQ(late_step, step);
    late.Push(late_step, Gradient(2, step.value));
    late_step = late.Next();
    Subtract(expected, kRate / 2, Gradient(0, step.value));
    Subtract(expected, kRate / 2, Gradient(1, step.value));
  }
  late.Push(step, Gradient(2, step.value));
  ASSERT_EQ(late.Next(), step + 1);
  a.Push(step, Gradient(0, step.value));
  ASSERT_EQ(a.Next(), step + 1);
  constexpr float kWeight = 2 + kRounds;
  Subtract(expected, kRate / kWeight, Gradient(0, step.value));
  for (uint64_t s = 0; s <= kRounds; ++s) Subtract(expected, kRate / kWeight, Gradient(2, s));

  EXPECT_EQ(a.Parameters(), expected);
  EXPECT_EQ(late.Parameters(), expected);
  EXPECT_EQ(late.client().statistics().late_pushes,
            kRounds * late.client().partition().shard_count());
}

TEST(BackupTest, AStragglerJumpsToTheOpenRoundAtOnce) {
  Cluster cluster(Rule::Backup(3, 1));
  Worker a(cluster, 0), b(cluster, 1), late(cluster, 2);
  Step step = a.Join();
  b.Join();
  const Step late_step = late.Join();
  ASSERT_TRUE(late.client().WaitAll().ok());
  for (; step.value < 5; ++step) {
    a.Push(step, Gradient(0, step.value));
    b.Push(step, Gradient(1, step.value));
    a.Next();
    b.Next();
  }
  late.Push(late_step, Gradient(2, 0));
  EXPECT_EQ(late.Next(), Step{5});
  EXPECT_EQ(late.client().statistics().jumped_steps, 1u);
  EXPECT_EQ(late.Parameters(), a.Parameters());
}

// fp8 loses an eighth of a value at worst; with error feedback that is all that is ever missing.
TEST(ErrorFeedbackTest, WhatFp8LostIsSentLater) {
  constexpr Step kLast{40};
  Cluster cluster(Rule::Async(2));
  ClientOptions options;
  options.push.id = CodecId::kFp8E5m2;
  Worker a(cluster, 0, options), b(cluster, 1, options);
  std::thread other([&] { b.Train(kLast, true); });
  a.Train(kLast, true);
  other.join();
  EXPECT_TRUE(a.client().Leave().ok());
  EXPECT_TRUE(b.client().Leave().ok());
  Tensors expected = Initial();
  float largest = 0;
  for (uint32_t w = 0; w < 2; ++w) {
    for (uint64_t s = 0; s < kLast.value; ++s) Subtract(expected, kRate, Gradient(w, s));
  }
  const Tensors masters = Masters(cluster);
  for (size_t t = 0; t < masters.size(); ++t) {
    for (size_t i = 0; i < masters[t].size(); ++i) {
      largest = std::max(largest, std::abs(masters[t][i] - expected[t][i]));
    }
  }
  // Two residuals of at most 1/8 of 2 + 1/4 each; the drift without feedback is tens of these.
  EXPECT_LE(largest, kRate * 2 * (2.25f / 8) + 1e-4f);
}

TEST(RejoinTest, AKilledWorkersNumberIsTakenOverAheadOfTheOthers) {
  Cluster cluster(Rule::Sync(2));
  Worker a(cluster, 0);
  auto killed = std::make_unique<Worker>(cluster, 1);
  const Step step = a.Join();
  killed->Join();
  a.Push(step, Gradient(0, 0));
  killed->Push(step, Gradient(1, 0));
  ASSERT_EQ(a.Next(), step + 1);
  killed->Next();
  killed.reset();

  // Worker 0 is heard in the middle of the lease, worker 1 is not.
  cluster.clock().Advance(kLease * 0.6);
  for (uint32_t s = 0; s < kServers; ++s) {
    for (bool heard = false; !heard;) {
      absl::Notification told;
      cluster.job(s).Status([&](absl::StatusOr<StatusReply> reply) {
        heard = reply->workers(0).heard_seconds_ago() == 0;
        told.Notify();
      });
      told.WaitForNotification();
    }
  }
  cluster.clock().Advance(kLease * 0.6);
  for (uint32_t s = 0; s < kServers; ++s) {
    absl::Notification ticked;
    cluster.job(s).Tick([&] { ticked.Notify(); });
    ticked.WaitForNotification();
  }
  a.Push(step + 1, Gradient(0, 1));
  ASSERT_EQ(a.Next(), step + 2);
  Tensors expected = a.Parameters();  // round 1 closed without worker 1

  Worker again(cluster, 1);
  const Step first = again.Join();
  EXPECT_EQ(first, step + 3) << "one ahead of the open round";
  a.Push(step + 2, Gradient(0, 2));
  ASSERT_EQ(a.Next(), step + 3);
  Subtract(expected, kRate, Gradient(0, 2));
  // Whoever has been answered is live: the next round waits for it.
  EXPECT_EQ(again.Parameters(), expected);
  a.Push(step + 3, Gradient(0, 3));
  again.Push(first, Gradient(1, 3));
  ASSERT_EQ(a.Next(), step + 4);
  ASSERT_EQ(again.Next(), step + 4);
  Subtract(expected, kRate / 2, Gradient(0, 3));
  Subtract(expected, kRate / 2, Gradient(1, 3));
  EXPECT_EQ(again.Parameters(), expected);
  EXPECT_EQ(a.Parameters(), expected);
}

}  // namespace
}  // namespace thinwire
