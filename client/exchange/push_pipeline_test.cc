#include "client/exchange/push_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "client/exchange/exchange_fixture.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;

TEST(StepVerdictsTest, AStepWithoutALatePushIsFollowedByTheNext) {
  StepVerdicts verdicts(Step{4}, 2);
  EXPECT_FALSE(verdicts.complete());
  verdicts.Add(false, Step{4});
  EXPECT_FALSE(verdicts.complete());
  verdicts.Add(false, Step{9});
  ASSERT_TRUE(verdicts.complete());
  EXPECT_EQ(verdicts.next(), Step{5});
}

TEST(StepVerdictsTest, ALatePushJumpsToTheLargestFrontierOfAllVerdicts) {
  StepVerdicts verdicts(Step{4}, 3);
  verdicts.Add(true, Step{6});
  verdicts.Add(false, Step{9});
  verdicts.Add(false, Step{4});
  EXPECT_EQ(verdicts.next(), Step{9});
}

TEST(StepVerdictsTest, ALateStepAdvancesByAtLeastOne) {
  StepVerdicts verdicts(Step{4}, 1);
  verdicts.Add(true, Step{2});
  EXPECT_EQ(verdicts.next(), Step{5});
}

class PushPipelineTest : public ExchangeFixture {
 protected:
  using ExchangeFixture::ExchangeFixture;

  // Starts a step and passes the gradient of the model's only tensor to the pipeline.
  void Push(uint64_t step, uint32_t examples = 8) {
    progress_.BeginStep();
    loop_->Run([&] {
      pushes_.BeginStep(Step{step}, examples, 1, 1);
      pushes_.Ready(0, gradient_, nullptr);
    });
  }

  void JudgeAs(uint32_t kind, uint64_t frontier) {
    for (FakeServer& server : servers_) {
      server.set_judge([=](const PushEntry&) -> VerdictEntry {
        return {.kind = kind, .frontier = Step{frontier}};
      });
    }
  }

  std::vector<float> gradient_ = std::vector<float>(partition_.value_count(), 0.5f);
};

TEST_F(PushPipelineTest, AGradientIsPushedAndItsVerdictsEndTheStep) {
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const ShardId shard{s};
    servers_[partition_.server(shard).value].Seed(
        shard, std::vector<float>(partition_.value_count(shard), initial_[0]));
  }
  Push(0);
  EXPECT_TRUE(progress_.WaitEncoded().ok());
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  EXPECT_TRUE(progress_.WaitAll().ok()) << "a push is also a read";
  EXPECT_EQ(counters().accepted_pushes(), partition_.shard_count());
  EXPECT_EQ(counters().push_bytes_raw(), 4 * partition_.value_count());
  EXPECT_GE(counters().encode_micros(), partition_.shard_count());
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    EXPECT_EQ(servers_[partition_.server(ShardId{s}).value].masters(ShardId{s})[7],
              initial_[0] - 0.5f);
  }
}

TEST_F(PushPipelineTest, ShardsArePushedInAscendingOrder) {
  Push(0);
  ASSERT_TRUE(progress_.WaitNext().ok());
  for (uint32_t s = 0; s < 2; ++s) {
    std::vector<ShardId> pushed;
    for (const PushEntry& push : servers_[s].pushes()) pushed.push_back(push.shard);
    EXPECT_EQ(pushed, partition_.ShardsOf(ServerId{s}));
  }
}

TEST_F(PushPipelineTest, AStepOfWeightZeroPushesNoValues) {
  gradient_.assign(gradient_.size(), std::numeric_limits<float>::quiet_NaN());
  Push(0, 0);
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  EXPECT_EQ(counters().nonfinite_gradients(), 0u) << "the values are not read";
  for (const PushEntry& push : servers_[0].pushes()) {
    EXPECT_EQ(push.examples, 0u);
    EXPECT_TRUE(push.payload.empty());
  }
  EXPECT_EQ(servers_[0].pushes().size(), partition_.ShardsOf(ServerId{0}).size());
}

TEST_F(PushPipelineTest, ALatePushJumpsAndReadsAllShardsForTheNextStep) {
  JudgeAs(PushVerdict::LATE, 6);
  Push(2);
  EXPECT_EQ(*progress_.WaitNext(), Step{6});
  EXPECT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(counters().late_pushes(), partition_.shard_count());
  EXPECT_EQ(counters().jumped_steps(), 1u);
  loop_->Run([this] { EXPECT_EQ(reads_.step(), Step{6}); });
}

TEST_F(PushPipelineTest, AStepBeginsWhileEarlierOnesLackVerdicts) {
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const ShardId shard{s};
    FakeServer& server = servers_[partition_.server(shard).value];
    server.Seed(shard, std::vector<float>(partition_.value_count(shard), initial_[0]));
    server.set_answer([](ParametersEntry& answer) { answer.steps_ahead = 2; });
  }
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  transport_.Mute(ServerId{1}, true);
  for (uint64_t step = 0; step < 2; ++step) {
    Push(step);
    EXPECT_EQ(*progress_.WaitNext(), Step{step + 1});
    EXPECT_TRUE(progress_.WaitAll().ok()) << "the parameters of step 0 permit two more steps";
  }
  Push(2);
  ASSERT_TRUE(progress_.WaitEncoded().ok());
  EXPECT_FALSE(progress_.judged());
  loop_->Run([this] { EXPECT_EQ(pushes_.next(), Step{0}); });
  transport_.Mute(ServerId{1}, false);
  transport_.DropStreams(ServerId{1});
  EXPECT_EQ(*progress_.WaitNext(), Step{3});
  ASSERT_TRUE(progress_.WaitJudged().ok());
  loop_->Run([this] { EXPECT_EQ(pushes_.Settle(), Step{3}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  for (const float value : replica_.tensor(0)) ASSERT_EQ(value, initial_[0] - 3 * 0.5f);
  EXPECT_EQ(counters().accepted_pushes(), 3 * partition_.shard_count());
}

TEST_F(PushPipelineTest, AStepWithoutAGradientMayBeStartedAgainOrSettled) {
  Push(0);
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  loop_->Run([&] {
    pushes_.BeginStep(Step{1}, 8, 1, 1);
    pushes_.BeginStep(Step{1}, 8, 1, 1);
    EXPECT_EQ(pushes_.next(), Step{1});
    EXPECT_EQ(pushes_.Settle(), Step{1});
  });
  Push(1);
  EXPECT_EQ(*progress_.WaitNext(), Step{2});
  EXPECT_EQ(counters().accepted_pushes(), 2 * partition_.shard_count());
}

TEST_F(PushPipelineTest, AFencedPushIsAFailure) {
  JudgeAs(PushVerdict::FENCED, 0);
  Push(0);
  EXPECT_EQ(WaitForFailure(),
            absl::AlreadyExistsError("worker 2: another process has joined under this number"));
}

TEST_F(PushPipelineTest, AnEarlyPushMeansThatTheServerLostItsState) {
  JudgeAs(PushVerdict::EARLY, 3);
  Push(9);
  const absl::Status failure = WaitForFailure();
  EXPECT_EQ(failure.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(failure.message()),
              HasSubstr("is at step 3, too far behind for a push of step 9"));
}

TEST_F(PushPipelineTest, AStalePushMeansThatTheJobHasAnotherGeneration) {
  JudgeAs(PushVerdict::STALE, 0);
  Push(0);
  EXPECT_THAT(std::string(WaitForFailure().message()), HasSubstr("another generation"));
}

TEST_F(PushPipelineTest, AnUnknownVerdictIsAFailure) {
  JudgeAs(9, 0);
  Push(0);
  EXPECT_THAT(std::string(WaitForFailure().message()),
              HasSubstr("unknown verdict (expected 1 to 7, got 9)"));
}

// A model with 12 MiB of gradients.
class LargePushPipelineTest : public PushPipelineTest {
 protected:
  LargePushPipelineTest() : PushPipelineTest(12, 262144) {}
};

TEST_F(LargePushPipelineTest, EncodingStaysAtMostOneMessageAheadOfTheNetwork) {
  // A muted server receives no message, so the send queues fill up.
  for (uint32_t s = 0; s < 2; ++s) transport_.Mute(ServerId{s}, true);
  Push(0);
  uint64_t encoded_bytes = 0;
  for (int idle = 0; idle < 10; ++idle) {  // until ten tasks in a row have encoded nothing
    loop_->Run([] {});
    if (counters().push_bytes_encoded() != encoded_bytes) idle = 0;
    encoded_bytes = counters().push_bytes_encoded();
  }
  // At most three messages per server are encoded: one that is being written, one that is ready to
  // be written, and one that is queued.
  EXPECT_GT(encoded_bytes, 0u);
  EXPECT_LE(encoded_bytes, 2 * 3 * (kMessageBytes + 4096));
  for (uint32_t s = 0; s < 2; ++s) {
    transport_.Mute(ServerId{s}, false);
    transport_.DropStreams(ServerId{s});
  }
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  EXPECT_EQ(counters().accepted_pushes(), partition_.shard_count());
}

}  // namespace
}  // namespace thinwire::client
