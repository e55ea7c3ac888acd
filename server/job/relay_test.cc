// Tests a job that relays its rounds.
#include <glog/logging.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/job/testing/job_servers.h"

namespace thinwire {
namespace {

// Keeps each round until the test answers it.
class HeldRelay final : public RoundRelay {
 public:
  struct Round {
    RelayedRound round;
    std::vector<std::vector<float>> tensors;  // those of `round`
    std::function<void(const TensorValues&)> done;
  };

  void Pass(RelayedRound round, std::function<void(const TensorValues&)> done) override {
    absl::MutexLock lock(&mu_);
    Round& held = rounds_.emplace_back();
    for (const std::span<const float> tensor : round.tensors) {
      held.tensors.emplace_back(tensor.begin(), tensor.end());
    }
    held.round = std::move(round);
    held.done = std::move(done);
  }
  void Pause(const Departure& departure) override {
    absl::MutexLock lock(&mu_);
    pauses_.push_back(departure);
  }

  // Blocks until there is a round, and returns it.
  Round Next() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::vector<Round>* rounds) { return !rounds->empty(); }, &rounds_));
    Round next = std::move(rounds_.front());
    rounds_.erase(rounds_.begin());
    return next;
  }
  std::vector<Departure> pauses() {
    absl::MutexLock lock(&mu_);
    return pauses_;
  }
  Departure NextPause() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::vector<Departure>* pauses) { return !pauses->empty(); }, &pauses_));
    return pauses_.front();
  }

 private:
  absl::Mutex mu_;
  std::vector<Round> rounds_ ABSL_GUARDED_BY(mu_);
  std::vector<Departure> pauses_ ABSL_GUARDED_BY(mu_);
};

class RelayTest : public JobServersTest {
 protected:
  RelayTest() { relay_ = &held_; }
  ~RelayTest() override {
    for (auto& streams : streams_) streams.clear();
    jobs_[0].reset();  // calls the relay
  }

  // Starts a job whose tensors have parts in one shard and in several shards.
  void Start(uint32_t workers) {
    JobSpec spec;
    spec.rule = Rule::Sync(workers);
    StartServers(spec, {{"w", {3, 2}}, {"b", {3}}, {"c", {1}}}, /*shard_size=*/4);
    ASSERT_EQ(partition_.shard_count(), 3u);
    for (uint32_t w = 0; w < workers; ++w) {
      ASSERT_TRUE(Join(w, 0).ok());
      streams_[w].push_back(std::make_unique<TestStream>(*jobs_[0]));
      WorkerFrame frame = FrameOf(w);
      for (const ShardId shard : partition_.ShardsOf(ServerId{0})) {
        frame.seeds.push_back({shard, Values(shard, static_cast<float>(shard.value))});
        frame.reads.push_back({shard, {0}, {0}, kFp32});
      }
      streams_[w][0]->Send(frame);
    }
  }
  // Answers the round HELD with VALUE for all parameters.
  static void Answer(const HeldRelay::Round& held, float value) {
    std::vector<std::vector<float>> values;
    for (const auto& tensor : held.tensors) values.emplace_back(tensor.size(), value);
    held.done(TensorValues(values.begin(), values.end()));
  }
  void ExpectMasters(float value) {
    const std::vector<float> masters = Masters(0);
    ASSERT_EQ(masters.size(), 10u);
    for (const float master : masters) EXPECT_EQ(master, value);
  }

  HeldRelay held_;
};

TEST_F(RelayTest, EachRoundIsRelayedAsWholeTensors) {
  Start(2);
  HeldRelay::Round round = held_.Next();
  EXPECT_TRUE(round.round.first);
  EXPECT_EQ(round.round.join.tensors_size(), 3);
  ASSERT_EQ(round.tensors.size(), 3u);
  for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
    for (const Segment& part : partition_.segments(ShardId{shard})) {
      for (uint64_t i = 0; i < part.count; ++i) {
        EXPECT_EQ(round.tensors[part.tensor][part.offset + i], shard) << "the first values";
      }
    }
  }
  Answer(round, 8);
  for (uint32_t w = 0; w < 2; ++w) AwaitParameters(w, 0);
  ExpectMasters(8);

  PushValues(0, 0, 0,
             [&](ShardId shard) { return Values(shard, static_cast<float>(shard.value)); });
  Push(1, 0, 0, 2);
  round = held_.Next();
  EXPECT_FALSE(round.round.first);
  EXPECT_EQ(round.round.step, Step{0});
  EXPECT_EQ(round.round.examples, 2u);
  for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
    for (const Segment& part : partition_.segments(ShardId{shard})) {
      for (uint64_t i = 0; i < part.count; ++i) {
        EXPECT_EQ(round.tensors[part.tensor][part.offset + i], (static_cast<float>(shard) + 2) / 2);
      }
    }
  }
  ExpectMasters(8);
  Answer(round, 3);
  for (uint32_t w = 0; w < 2; ++w) AwaitParameters(w, 1);
  ExpectMasters(3);
}

// Keeps the lines of the log.
class LogLines final : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t length) override {
    absl::MutexLock lock(&mu_);
    absl::StrAppend(&text_, absl::string_view(message, length), "\n");
  }
  std::string text() {
    absl::MutexLock lock(&mu_);
    return text_;
  }

 private:
  absl::Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
};

TEST_F(RelayTest, AfterTheStartTimeoutTrainingStillNeedsTheParametersOfTheUpperJob) {
  LogLines lines;
  Start(2);
  const HeldRelay::Round round = held_.Next();
  clock_.Advance(JobSpec().start_timeout);
  Tick(0);
  Answer(round, 8);
  for (uint32_t w = 0; w < 2; ++w) AwaitParameters(w, 0);  // behind the events of the timeout
  EXPECT_THAT(lines.text(), testing::HasSubstr("all 2 workers are live, but after 1m training has "
                                               "not begun: the first parameters are missing"));
  EXPECT_THAT(lines.text(), testing::Not(testing::HasSubstr("training begins with")));
}

TEST_F(RelayTest, TheRelayPausesBehindTheLastRound) {
  Start(1);
  Answer(held_.Next(), 1);
  AwaitParameters(0, 0);
  Push(0, 0, 0, 4);
  const HeldRelay::Round round = held_.Next();
  LeaveRequest request;
  request.set_worker(0);
  request.set_incarnation(1);
  request.set_run(run_);
  request.set_finished(true);
  Pending<LeaveReply> left;
  jobs_[0]->Call(request, left.done());
  ASSERT_TRUE(left.Get().ok()) << left.Get().status();
  Tick(0);
  Tick(0);
  EXPECT_TRUE(held_.pauses().empty()) << "a round is under way";
  Answer(round, 2);
  ExpectMasters(2);
  Status(0);  // ends behind the end of the round
  Tick(0);
  EXPECT_TRUE(held_.NextPause().finished);
  Tick(0);
  EXPECT_EQ(held_.pauses().size(), 1u);
}

TEST_F(RelayTest, ALogIsRefused) {
  Start(1);
  JobSpec spec;
  spec.recovery.durability = Durability::kLog;
  ServerSettings settings;
  settings.relay = &held_;
  EXPECT_EQ(
      MakeJob(spec, settings, clock_, threads_.executors()).status().message(),
      "durability: not possible in a job that relays its rounds (expected none or checkpoint, "
      "got log)");
}

}  // namespace
}  // namespace thinwire
