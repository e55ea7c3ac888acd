// Tests that examples are dealt anew when workers join, leave and die, with real clients, real
// server jobs and the real sampler in one process: over a run, every example of every epoch is part
// of exactly one push. In mode backup, late workers skip steps; there, it is part of one push or of
// one skipped batch.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "proto/control.pb.h"
#include "server/protocols/state/dealer.h"
#include "tests/clusters/small_cluster.h"
#include "worker/batches/sampler.h"

namespace thinwire {
namespace {

constexpr uint64_t kDataExamples = 1200;
constexpr uint32_t kBatch = 2;
constexpr uint64_t kEpochs = 3;

// Limits the steps of all workers, so that a test can act between two steps. Thread-safe.
class Gate {
 public:
  void Allow(uint64_t limit) {
    absl::MutexLock lock(&mu_);
    limit_ = limit;
  }
  // Blocks until STEP is below the limit.
  void Pass(Step step) {
    const auto open = [this, step]()
                          ABSL_SHARED_LOCKS_REQUIRED(mu_) { return step.value < limit_; };
    absl::MutexLock lock(&mu_, absl::Condition(&open));
  }

 private:
  absl::Mutex mu_;
  uint64_t limit_ ABSL_GUARDED_BY(mu_) = 0;
};

// A worker that trains on a thread. It counts the examples of each step when the step has its
// verdicts. Lives until the test ends.
class DealtWorker {
 public:
  DealtWorker(SmallCluster& cluster, Gate& gate, uint32_t number)
      : gate_(gate),
        number_(number),
        worker_(std::make_unique<SmallWorker>(cluster, number, Options())),
        sampler_({.example_count = kDataExamples,
                  .worker = WorkerId{number},
                  .workers = 2,
                  .batch_size = kBatch}),
        thread_([this] { Run(); }) {}
  ~DealtWorker() { Await(); }

  // The worker leaves before STEP, or dies after it has sent its pushes of STEP.
  void LeaveBefore(uint64_t step) { leave_before_ = step; }
  void DieIn(uint64_t step) { die_in_ = step; }
  // Blocks until the worker waits at the gate before STEP or has ended.
  void AwaitStep(uint64_t step) {
    const auto there = [this, step]()
                           ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_ || step_ >= step; };
    absl::MutexLock lock(&mu_, absl::Condition(&there));
  }
  // Blocks until the worker has left or died.
  void Await() {
    if (thread_.joinable()) thread_.join();
  }

  // REQUIRES: Await has returned.
  const std::map<uint32_t, int>& counts() const { return counts_; }
  // The batches of the steps that the worker has skipped, by step.
  const std::map<uint64_t, std::vector<uint32_t>>& skipped() const { return skipped_; }
  // The batch of the step in which the worker died.
  const std::vector<uint32_t>& in_flight() const { return in_flight_; }

 private:
  // The lead needs the task for batches that grow.
  static ClientOptions Options() {
    ClientOptions options;
    options.config.emplace();
    options.config->mutable_task()->set_batch_size(kBatch);
    options.config->mutable_task()->set_epochs(kEpochs);
    options.planned_examples = kEpochs * kDataExamples;
    return options;
  }

  void Run() {
    Train();
    absl::MutexLock lock(&mu_);
    ended_ = true;
  }

  void Train() {
    Client& client = worker_->client();
    Step step = worker_->Join();
    for (Step expected = step;; expected = expected + 1) {
      {
        absl::MutexLock lock(&mu_);
        step_ = step.value;
      }
      gate_.Pass(step);
      const auto deals = client.deals().Wait(step, sampler_.deal_count());
      ASSERT_TRUE(deals.ok()) << deals.status();
      for (const Deal& deal : *deals) sampler_.Add(deal);
      for (; expected < step; expected = expected + 1) {
        const auto batch = sampler_.Batch(expected);
        if (sampler_.epoch(expected) >= kEpochs || batch.empty()) continue;
        skipped_[expected.value] = {batch.begin(), batch.end()};
      }
      const uint64_t epoch = sampler_.epoch(step);
      const Step begin = sampler_.EpochBegin(epoch);
      if (begin <= step) client.deals().BeginEpoch(epoch, begin);
      if (sampler_.epoch(step) >= kEpochs || step.value >= leave_before_) break;
      const auto examples = sampler_.Batch(step);
      const std::vector<uint32_t> batch(examples.begin(), examples.end());
      // The gradients of two workers nearly cancel each other, so their noise scale is large.
      const Tensors gradient = batch.empty() ? Zeros() : Gradient(16 * number_, step.value);
      client.BeginStep(step, static_cast<uint32_t>(batch.size()));
      ASSERT_TRUE(client.WaitAll().ok());
      for (uint32_t t = gradient.size(); t-- > 0;) client.Ready(t, gradient[t]);
      ASSERT_TRUE(client.EndStep().ok());
      if (step.value >= die_in_) {
        in_flight_ = batch;
        worker_.reset();
        return;
      }
      const auto next = client.NextStep();
      ASSERT_TRUE(next.ok()) << next.status();
      for (const uint32_t example : batch) ++counts_[example];
      step = *next;
    }
    EXPECT_TRUE(client.Leave().ok());
  }

  Gate& gate_;
  const uint32_t number_;
  std::unique_ptr<SmallWorker> worker_;
  Sampler sampler_;
  std::atomic<uint64_t> leave_before_ = UINT64_MAX;
  std::atomic<uint64_t> die_in_ = UINT64_MAX;
  std::map<uint32_t, int> counts_;
  std::map<uint64_t, std::vector<uint32_t>> skipped_;
  std::vector<uint32_t> in_flight_;
  absl::Mutex mu_;
  uint64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last, because it uses the members above
};

class ElasticTest : public testing::TestWithParam<Rule> {
 protected:
  // Lets the workers end. Then every example must be counted once in each epoch.
  void ExpectEveryExampleOnce() {
    gate_.Allow(UINT64_MAX);
    for (const auto& worker : workers_) worker->Await();
    std::map<uint32_t, int> counts = Counts();
    EXPECT_EQ(counts.size(), kDataExamples);
    for (const auto& [example, count] : counts) {
      EXPECT_EQ(count, static_cast<int>(kEpochs)) << "example " << example;
    }
  }

  // Returns how often each example was in a pushed or skipped batch. REQUIRES: all workers have
  // ended.
  std::map<uint32_t, int> Counts() const {
    std::map<uint32_t, int> counts;
    for (const auto& worker : workers_) {
      for (const auto& [example, count] : worker->counts()) counts[example] += count;
      for (const auto& [step, batch] : worker->skipped()) {
        for (const uint32_t example : batch) ++counts[example];
      }
    }
    return counts;
  }

  explicit ElasticTest(std::optional<GrowthSpec> growth = std::nullopt)
      : cluster_(WithMost(GetParam()), std::nullopt, {}, RunId{1}, growth) {}

  static Rule WithMost(Rule rule) {
    rule.max_workers = 4;
    return rule;
  }

  DealtWorker& Start(uint32_t number) {
    workers_.push_back(std::make_unique<DealtWorker>(cluster_, gate_, number));
    return *workers_.back();
  }
  absl::StatusOr<ScaleReply> Scale(uint32_t workers) {
    ScaleRequest request;
    request.set_workers(workers);
    absl::StatusOr<ScaleReply> answer;
    absl::Notification answered;
    cluster_.job(0).Call(request, [&](absl::StatusOr<ScaleReply> reply) {
      answer = std::move(reply);
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }
  absl::StatusOr<SetModeReply> SetMode(const Consistency& settings) {
    SetModeRequest request;
    *request.mutable_consistency() = settings;
    absl::StatusOr<SetModeReply> answer;
    absl::Notification answered;
    cluster_.job(0).Call(request, [&](absl::StatusOr<SetModeReply> reply) {
      answer = std::move(reply);
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }
  // Returns the mode in force at SERVER.
  std::string ModeOf(uint32_t server) {
    std::string mode;
    absl::Notification answered;
    cluster_.job(server).Call(StatusRequest(), [&](absl::StatusOr<StatusReply> reply) {
      mode = reply->mode();
      answered.Notify();
    });
    answered.WaitForNotification();
    return mode;
  }
  // Returns all deals that the lead has announced.
  std::vector<Deal> Deals() {
    HeartbeatReply answer;
    absl::Notification answered;
    cluster_.job(0).Call(HeartbeatRequest(), [&](absl::StatusOr<HeartbeatReply> reply) {
      answer = *std::move(reply);
      answered.Notify();
    });
    answered.WaitForNotification();
    return {answer.deals().begin(), answer.deals().end()};
  }
  // Blocks until the lead has announced COUNT deals while the workers LIVE live, and returns the
  // last deal. The time passes only while all of them are heard.
  Deal AwaitDeals(size_t count, const std::vector<uint32_t>& live) {
    std::vector<Deal> deals;
    // The lead drops the deals of earlier epochs.
    while ((deals = Deals()).empty() || deals.back().number() < count) {
      for (const uint32_t worker : live) cluster_.AwaitHeard(worker);
      cluster_.Tick();
      cluster_.clock().Advance(Dealer::kSettleTime / 2);
    }
    EXPECT_EQ(deals.back().number(), count);
    return deals.back();
  }

  static std::vector<uint32_t> MembersOf(const Deal& deal) {
    return {deal.members().begin(), deal.members().end()};
  }

  SmallCluster cluster_;
  Gate gate_;
  std::vector<std::unique_ptr<DealtWorker>> workers_;
};

TEST_P(ElasticTest, EveryExampleOfAcceptedPushesIsCountedOnce) {
  using Numbers = std::vector<uint32_t>;
  DealtWorker& first = Start(0);
  DealtWorker& leaver = Start(1);
  gate_.Allow(20);
  first.AwaitStep(20);
  leaver.AwaitStep(20);

  // Worker 2 joins.
  EXPECT_EQ(Scale(5).status().code(), absl::StatusCode::kInvalidArgument);
  const auto scaled = Scale(3);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_EQ(scaled->workers(), 2u);
  DealtWorker& killed = Start(2);
  EXPECT_EQ(MembersOf(AwaitDeals(1, {0, 1, 2})), (Numbers{0, 1, 2}));

  // Worker 1 leaves.
  leaver.LeaveBefore(60);
  gate_.Allow(60);
  first.AwaitStep(60);
  killed.AwaitStep(60);
  leaver.AwaitStep(60);
  gate_.Allow(61);
  leaver.Await();
  const Deal left = AwaitDeals(2, {0, 2});
  EXPECT_EQ(MembersOf(left), (Numbers{0, 2}));
  ASSERT_EQ(left.departed_size(), 1);
  // A worker that has skipped the last steps has judged pushes of earlier ones only.
  const uint64_t left_next = left.departed(0).next();
  EXPECT_LE(left_next, 60u);
  if (GetParam().mode() != "backup") {
    EXPECT_EQ(left_next, 60u);
  }

  // Worker 2 dies in the middle of a step.
  killed.DieIn(100);
  gate_.Allow(101);
  killed.Await();
  cluster_.AwaitHeard(0);
  cluster_.clock().Advance(kLease + absl::Seconds(1));
  cluster_.AwaitHeard(0);
  const Deal lost = AwaitDeals(3, {0});
  EXPECT_EQ(MembersOf(lost), (Numbers{0}));
  ASSERT_EQ(lost.departed_size(), 1);
  EXPECT_EQ(lost.departed(0).worker(), 2u);
  // The lead may have accepted the push of the last step.
  const uint64_t next = lost.departed(0).next();
  EXPECT_TRUE(next == 100 || next == 101) << next;

  // Worker 2 returns, and the run ends.
  DealtWorker& returned = Start(2);
  EXPECT_EQ(MembersOf(AwaitDeals(4, {0, 2})), (Numbers{0, 2}));
  gate_.Allow(UINT64_MAX);
  for (const auto& worker : workers_) worker->Await();
  EXPECT_FALSE(returned.counts().empty());

  std::map<uint32_t, int> counts = Counts();
  // These examples were dealt again.
  for (const auto& [step, batch] : leaver.skipped()) {
    if (step < left_next) continue;
    for (const uint32_t example : batch) --counts[example];
  }
  const std::vector<uint32_t>& in_flight = killed.in_flight();
  RecordProperty("in_flight_examples", static_cast<int>(in_flight.size()));
  RecordProperty("in_flight_accepted", next == 101 ? 1 : 0);
  if (next == 101) {
    for (const uint32_t example : in_flight) ++counts[example];
  }
  int checked_count = 0;
  for (uint32_t example = 0; example < kDataExamples; ++example) {
    EXPECT_EQ(counts[example], static_cast<int>(kEpochs)) << "example " << example;
    ++checked_count;
  }
  EXPECT_EQ(checked_count, 1200);
  if (GetParam().mode() == "backup") return;
  for (const auto& worker : workers_) EXPECT_TRUE(worker->skipped().empty());
}

TEST_P(ElasticTest, EveryExampleIsCountedOnceWhileTheModeChanges) {
  DealtWorker& first = Start(0);
  DealtWorker& second = Start(1);
  uint64_t limit = 20;
  Consistency async, backup, ssp, sync;
  async.set_mode(Consistency::Mode::async);
  async.set_fold_every(3);
  backup.set_mode(Consistency::Mode::backup);
  backup.set_backup(1);
  ssp.set_mode(Consistency::Mode::ssp);
  ssp.set_slack(1);
  for (const Consistency& settings : {async, sync, backup, ssp, async}) {
    gate_.Allow(limit);
    first.AwaitStep(limit);
    second.AwaitStep(limit);
    const std::string mode = Consistency::Mode::Value_Name(settings.mode());
    const absl::StatusOr<SetModeReply> reply = SetMode(settings);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_GE(reply->step(), limit + Dealer::kLeastSteps);
    limit = reply->step() + 5;
    gate_.Allow(limit);
    first.AwaitStep(limit);
    second.AwaitStep(limit);
    for (uint32_t server = 0; server < 2; ++server) EXPECT_EQ(ModeOf(server), mode);
  }
  ExpectEveryExampleOnce();
}

class GrowthTest : public ElasticTest {
 protected:
  GrowthTest() : ElasticTest(GrowthSpec{.largest_batch = kDataExamples / 10}) {}

  // Lets the workers WORKERS run to STEP. Then blocks until the lead has measured the noise of
  // updates of BATCH examples.
  void RunTo(uint64_t step, const std::vector<DealtWorker*>& workers, uint32_t batch) {
    gate_.Allow(step);
    for (DealtWorker* worker : workers) worker->AwaitStep(step);
    for (uint32_t measured = 0; measured != batch;) {
      cluster_.Tick();
      absl::Notification answered;
      cluster_.job(0).Call(StatusRequest(), [&](absl::StatusOr<StatusReply> reply) {
        measured = reply->batch();
        answered.Notify();
      });
      answered.WaitForNotification();
    }
  }
};

TEST_P(GrowthTest, EveryExampleIsCountedOnceWhileTheBatchGrowsAndAWorkerJoins) {
  DealtWorker& first = Start(0);
  DealtWorker& second = Start(1);
  // Every 16th step is measured.
  RunTo(1, {&first, &second}, 2 * kBatch);
  RunTo(80, {&first, &second}, 2 * kBatch);
  const Deal doubled = AwaitDeals(1, {0, 1});
  EXPECT_EQ(doubled.accumulate(), 2u);
  EXPECT_EQ(MembersOf(doubled), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(doubled.departed_size(), 0);
  EXPECT_GE(doubled.step(), 80 + Dealer::kLeastSteps);

  // The deal of a new worker has the same batches: 2, 1 and 1.
  ASSERT_TRUE(Scale(3).ok());
  DealtWorker& third = Start(2);
  const Deal joined = AwaitDeals(2, {0, 1, 2});
  EXPECT_EQ(std::vector(joined.batches().begin(), joined.batches().end()),
            (std::vector<uint32_t>{2, 1, 1}));
  EXPECT_EQ(MembersOf(joined), (std::vector<uint32_t>{0, 1, 2}));

  RunTo(joined.step() + 1, {&first, &second, &third}, 4 * kBatch);
  RunTo(joined.step() + 80, {&first, &second, &third}, 4 * kBatch);
  const Deal grown = AwaitDeals(3, {0, 1, 2});
  EXPECT_EQ(std::vector(grown.batches().begin(), grown.batches().end()),
            (std::vector<uint32_t>{3, 3, 2}));
  ExpectEveryExampleOnce();
}

INSTANTIATE_TEST_SUITE_P(Modes, GrowthTest, testing::Values(Rule::Sync(2)),
                         [](const auto& test) { return std::string(test.param.mode()); });

INSTANTIATE_TEST_SUITE_P(Modes, ElasticTest,
                         testing::Values(Rule::Sync(2), Rule::Backup(2, 1), Rule::Ssp(2, 2),
                                         Rule::Async(2)),
                         [](const auto& test) { return std::string(test.param.mode()); });

}  // namespace
}  // namespace thinwire
