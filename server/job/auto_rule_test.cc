// Tests the jobs whose lead changes the number of backup workers or the slack from measured times.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "proto/frame.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/test_stream.h"

namespace thinwire {
namespace {

constexpr uint32_t kWorkers = 3;
constexpr uint32_t kSlowWorker = 2;
constexpr Epoch kEpoch{77};

class AutoRuleTest : public testing::Test {
 protected:
  // Starts a job with RULE, and step 0 of all workers.
  void Make(const Rule& rule) {
    JobSpec spec;
    spec.rule = rule;
    spec.auto_rule = true;
    spec.lease = absl::Hours(10);
    job_ = MakeJob(spec, {.epoch = kEpoch}, clock_, threads_.executors()).value();
    for (uint32_t w = 0; w < kWorkers; ++w) {
      Pending<JoinReply> joined;
      job_->Join(
          JoinRequestOf(partition_, w, 0, 0), [] { return false; }, joined.done());
      ASSERT_TRUE(joined.Get().ok());
      streams_.push_back(std::make_unique<TestStream>(*job_));
    }
    for (uint32_t w = 0; w < kWorkers; ++w) {
      WorkerFrame frame = Frame(w);
      frame.seeds.push_back({{0}, Payload({0, 0, 0})});
      frame.reads.push_back({{0}, {0}, {0}, /*codec=*/1});
      streams_[w]->Send(frame);
    }
    Tick();
  }
  // Runs COUNT steps. The slow worker pushes SLOW after the others, which take 1 s.
  void RunSteps(int count, absl::Duration slow) {
    for (int i = 0; i < count; ++i, ++step_) {
      Advance(absl::Seconds(1));
      for (uint32_t w = 0; w < kSlowWorker; ++w) Push(w);
      Advance(slow);
      Push(kSlowWorker);
      Tick();
    }
  }
  StatusReply Status() {
    Pending<StatusReply> pending;
    job_->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  // Returns the rule in force: "backup 1".
  std::string RuleInForce() {
    const StatusReply status = Status();
    return absl::StrCat(status.mode(), " ", status.has_slack() ? status.slack() : status.backup());
  }
  absl::Status SetBackup(uint32_t backup) {
    SetModeRequest request;
    request.mutable_consistency()->set_mode(Consistency::Mode::backup);
    request.mutable_consistency()->set_backup(backup);
    Pending<SetModeReply> pending;
    job_->Call(request, pending.done());
    return pending.Get().status();
  }

 private:
  static WorkerFrame Frame(uint32_t worker) {
    WorkerFrame frame;
    frame.worker = {worker};
    frame.incarnation = {1};
    frame.generation = {1};
    frame.epoch = kEpoch;
    return frame;
  }
  void Push(uint32_t worker) {
    WorkerFrame frame = Frame(worker);
    PushEntry& push = frame.pushes.emplace_back();
    push.shard = {0};
    push.step = {step_};
    push.examples = 4;
    push.read_codec = 1;
    push.payload = Payload({1, 2, 3});
    streams_[worker]->Send(frame);
  }
  // Advances the clock after the job has handled all messages that were sent.
  void Advance(absl::Duration by) {
    Status();
    clock_.Advance(by);
  }
  // Ticks, and returns when the rule has been chosen and passed on: each Status() ends behind the
  // work that was posted to the shard and to the control thread before.
  void Tick() {
    Status();
    absl::Notification done;
    job_->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
    Status();
    Status();
  }

  const Partition partition_ = Partition::Make({{"w", {3}}}, 0, 1).value();
  ManualClock clock_;
  JobThreads threads_{2};
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<TestStream>> streams_;
  uint64_t step_ = 0;
};

TEST_F(AutoRuleTest, ASlowWorkerBecomesTheBackupWorkerAtAnAnnouncedStep) {
  Make(Rule::Backup(kWorkers, 0));
  RunSteps(15, absl::Seconds(4));
  EXPECT_EQ(RuleInForce(), "sync 0");
  RunSteps(3, absl::Seconds(4));
  EXPECT_EQ(RuleInForce(), "backup 1");
}

TEST_F(AutoRuleTest, EquallyFastWorkersNeedNoBackupWorker) {
  Make(Rule::Backup(kWorkers, 1));
  RunSteps(40, absl::ZeroDuration());
  EXPECT_EQ(RuleInForce(), "sync 0");
}

TEST_F(AutoRuleTest, TheModeOfTheOperatorEndsTheChoice) {
  Make(Rule::Backup(kWorkers, 0));
  RunSteps(40, absl::Seconds(4));
  EXPECT_EQ(RuleInForce(), "backup 1");
  EXPECT_EQ(SetBackup(0), absl::OkStatus());
  RunSteps(200, absl::Seconds(4));
  EXPECT_EQ(RuleInForce(), "sync 0");
}

TEST_F(AutoRuleTest, SlackThatSavesNoWaitingIsTakenBack) {
  Make(Rule::Ssp(kWorkers, 8));
  RunSteps(40, absl::ZeroDuration());
  EXPECT_EQ(RuleInForce(), "ssp 0");
}

}  // namespace
}  // namespace thinwire
