// Tests the events after which a shard publishes its parameters. delta_publisher_test.cc tests the
// contents of deltas.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

// Tests a shard with one value, initially 0. All workers have joined and requested the parameters
// for step 0.
class PublishingTest : public testing::Test {
 protected:
  void Open(const Rule& rule, uint32_t every = 0) {
    ShardOptions options;
    options.value_count = 1;
    options.rule = rule;
    options.publish = PublishOptions{.every = every};
    shard_ = std::make_unique<Shard>(options, optimizer_, schedule_);
    shard_->Apply(SeedEvent{Fp32Payload({0})});
    for (uint32_t i = 0; i < rule.workers; ++i) {
      workers_.push_back({WorkerId{i}});
      shard_->Apply(workers_[i].Join());
      shard_->Apply(workers_[i].Read(0));
    }
  }

  // Pushes a gradient of WORKER and returns the newest published version after the push.
  uint64_t Push(uint32_t worker, uint64_t step) {
    shard_->Apply(workers_[worker].Push(step, 1, {1}));
    return shard_->log()->newest().value;
  }

  const PlainDescent optimizer_;
  const Schedule schedule_ = ConstantRate();
  std::unique_ptr<Shard> shard_;
  std::vector<FakeWorker> workers_;
};

TEST_F(PublishingTest, PublishesTheSeed) {
  Open(Rule::Sync(1));
  EXPECT_EQ(shard_->log()->newest(), Version{0});
  EXPECT_EQ(shard_->published()[0], 0);
  shard_->Apply(SeedEvent{Fp32Payload({5})});
  EXPECT_EQ(shard_->published()[0], 0) << "the first seed counts";
}

TEST_F(PublishingTest, PublishesARoundWhenItCloses) {
  Open(Rule::Sync(2));
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(1, 0), 1u);
  EXPECT_EQ(shard_->published()[0], shard_->masters()[0]);
}

TEST_F(PublishingTest, AnEmptyRoundPublishesNothing) {
  Open(Rule::Sync(1));
  shard_->Apply(workers_[0].PushNothing(0));
  EXPECT_EQ(shard_->frontier(), Step{1});
  EXPECT_EQ(shard_->log()->newest(), Version{0});
}

TEST_F(PublishingTest, PublishesAfterOneUpdatePerLiveWorker) {
  Open(Rule::Async(3));
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(0, 1), 0u);
  EXPECT_EQ(Push(1, 0), 3u);
  EXPECT_EQ(Push(1, 1), 3u);
  shard_->Apply(workers_[2].Leave());
  EXPECT_EQ(shard_->log()->newest(), Version{3});
  EXPECT_EQ(Push(1, 2), 5u);
}

TEST_F(PublishingTest, PublishesWhenFewerLiveWorkersMakeTheUpdatesSufficient) {
  Open(Rule::Async(3));
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(0, 1), 0u);
  shard_->Apply(workers_[2].Expire());
  EXPECT_EQ(shard_->log()->newest(), Version{2});
}

TEST_F(PublishingTest, PublishEverySetsTheNumberOfUpdates) {
  Open(Rule::Async(2), 3);
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(1, 0), 0u);
  EXPECT_EQ(Push(0, 1), 3u);
}

TEST_F(PublishingTest, SspPublishesWhenItsFrontierMoves) {
  Open(Rule::Ssp(2, 1), 100);
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(0, 1), 0u);
  EXPECT_EQ(Push(1, 0), 3u);
}

TEST_F(PublishingTest, PublishesRemainingUpdatesWhenNoWorkerIsLive) {
  Open(Rule::Async(2, 2), 100);
  EXPECT_EQ(Push(0, 0), 0u);
  EXPECT_EQ(Push(0, 1), 0u);
  EXPECT_EQ(Push(0, 2), 0u);
  shard_->Apply(workers_[0].Leave());
  EXPECT_EQ(shard_->log()->newest(), Version{0});
  shard_->Apply(workers_[1].Expire());
  EXPECT_EQ(shard_->log()->newest(), Version{2}) << "with the rest that was folded";
}

}  // namespace
}  // namespace thinwire
