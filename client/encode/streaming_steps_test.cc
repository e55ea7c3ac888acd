#include "client/encode/streaming_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "client/encode/local_steps.h"
#include "common/model/fragments.h"
#include "common/spec/local_steps_spec.h"

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;

// The values of two tensors, which are two shards.
struct Values {
  std::vector<float> w, b;

  std::vector<std::span<float>> spans() { return {w, b}; }
  bool operator==(const Values&) const = default;
};

class StreamingStepsTest : public ::testing::Test {
 protected:
  // Returns x, or the differences, as text.
  static Values ToValues(StreamingSteps::Tensors tensors) {
    return {{tensors[0].begin(), tensors[0].end()}, {tensors[1].begin(), tensors[1].end()}};
  }
  void AddToX(float w, float b) {
    for (float& v : streaming_.parameters()[0]) v += w;
    for (float& v : streaming_.parameters()[1]) v += b;
  }

  const Partition partition_ = *Partition::Make({{"w", {2, 1}}, {"b", {1}}}, 4096, 1);
  const std::vector<std::vector<ShardId>> fragments_ = DealFragments(partition_, 2);
  const std::vector<ShardId> w_ = partition_.ShardsOfTensor(0), b_ = partition_.ShardsOfTensor(1);
  StreamingSteps streaming_{partition_};
};

TEST(MovesOfStepTest, AFragmentIsMixedBeforeTheNextOneIsPushed) {
  const LocalStepsSpec spec = {.count = 8, .fragments = 2, .overlap = 2, .mixing = 0.25};
  EXPECT_THAT(MovesOfStep(spec, 8, false),
              ElementsAre(FragmentMove{2, 0}, FragmentMove{4, 0, true, 0.25f}, FragmentMove{6, 1},
                          FragmentMove{8, 1, true, 0.25f}));
  // A step with two local steps: the overlap is one of them. With none, nothing is mixed.
  EXPECT_THAT(MovesOfStep(spec, 2, false),
              ElementsAre(FragmentMove{0, 0}, FragmentMove{1, 0, true, 0.25f}, FragmentMove{1, 1},
                          FragmentMove{2, 1, true, 0.25f}));
  EXPECT_THAT(MovesOfStep(spec, 1, false),
              ElementsAre(FragmentMove{0, 0}, FragmentMove{0, 0, true, 0}, FragmentMove{0, 1},
                          FragmentMove{1, 1, true, 0.25f}));
}

TEST(MovesOfStepTest, AWholeStepPushesEverythingAtItsEnd) {
  EXPECT_THAT(MovesOfStep({.count = 8, .fragments = 2, .overlap = 2}, 5, true),
              ElementsAre(FragmentMove{5, 0}, FragmentMove{5, 1}, FragmentMove{5, 0, true},
                          FragmentMove{5, 1, true}));
}

TEST_F(StreamingStepsTest, OneFragmentWithoutOwnWeightIsThatOfLocalSteps) {
  const std::vector<ShardId> all = DealFragments(partition_, 1)[0];
  LocalSteps local({.count = 2, .learning_rate = 0.3}, partition_.tensors());
  LocalSteps optimizer({.count = 2, .learning_rate = 0.3}, partition_.tensors());
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  Values replica = {{1.1f, 2.7f}, {-4.3f}};
  for (uint64_t step = 0; step < 20; ++step) {
    Values x = replica;
    local.Begin(x.spans());
    streaming_.Follow(Step{step}, replica.spans());
    for (int i = 0; i < 2; ++i) {
      Values gradient = {{draw(random), draw(random)}, {draw(random)}};
      Values same = gradient;
      local.Apply(x.spans(), gradient.spans());
      optimizer.Apply(streaming_.parameters(), same.spans());
    }
    Values difference = replica;
    local.Finish(x.spans(), difference.spans());
    streaming_.Take(all);
    EXPECT_EQ(ToValues(streaming_.differences()), difference);
    replica = {{draw(random), draw(random)}, {draw(random)}};  // the servers' next parameters
    streaming_.Mix(all, replica.spans(), 0);
    streaming_.Finish(Step{step + 1});
    EXPECT_EQ(ToValues(streaming_.parameters()), replica);
  }
}

TEST_F(StreamingStepsTest, AFragmentIsMixedWithTheStepsThatWentOn) {
  Values replica = {{8, 8}, {100}};
  streaming_.Follow(Step{0}, replica.spans());
  AddToX(-2, -10);
  streaming_.Take(w_);
  EXPECT_THAT(streaming_.differences()[0], ElementsAre(2, 2));
  AddToX(-4, -10);  // while the push is under way
  replica.w = {7, 7};
  streaming_.Mix(w_, replica.spans(), 0.25);
  // w: 0.25 * 2 + 0.75 * 7. b was not exchanged.
  EXPECT_EQ(ToValues(streaming_.parameters()), (Values{{5.75, 5.75}, {80}}));

  streaming_.Take(b_);
  EXPECT_THAT(streaming_.differences()[1], ElementsAre(20)) << "of all local steps";
  EXPECT_EQ(streaming_.UnpushedNorm(), 2) << "a quarter of the four in each value of w";
  AddToX(-1, 0);
  streaming_.Take(w_);
  // A quarter of the four during the push, which are still in w, and one since then.
  EXPECT_THAT(streaming_.differences()[0], ElementsAre(2, 2));
}

// The exchange of one tensor by workers that average their differences, computed here in doubles
// from the formulas of the paper's algorithm with the servers' optimizer sgd at rate 1.
TEST_F(StreamingStepsTest, ManyExchangesAreThoseOfAnIndependentComputation) {
  constexpr int kWorkers = 3, kSteps = 60, kPeriod = 6, kOverlap = 2;
  constexpr double kOwn = 0.5, kRate = 0.1;
  std::vector<StreamingSteps*> workers;
  StreamingSteps second(partition_), third(partition_);
  workers = {&streaming_, &second, &third};
  double global = 5, sent[kWorkers] = {}, x[kWorkers], pushed[kWorkers] = {};
  Values replica = {{5, 5}, {0}};
  for (int m = 0; m < kWorkers; ++m) {
    x[m] = global;
    workers[m]->Follow(Step{0}, replica.spans());
  }
  std::mt19937 random(2);
  std::normal_distribution<double> draw;
  double unsent[kWorkers] = {};  // the sum of the local updates without a push
  int exchanges = 0;
  for (int t = 1; t <= kSteps; ++t) {
    for (int m = 0; m < kWorkers; ++m) {
      const double update = kRate * (x[m] - m) + 0.01 * draw(random);
      x[m] -= update;
      unsent[m] += update;
      for (float& v : workers[m]->parameters()[0]) v -= static_cast<float>(update);
    }
    if (t % kPeriod == 0) {
      for (int m = 0; m < kWorkers; ++m) {
        sent[m] = unsent[m];
        unsent[m] = 0;
        workers[m]->Take(w_);
        pushed[m] = workers[m]->differences()[0][1];
        EXPECT_NEAR(pushed[m], sent[m], 1e-5) << t;
      }
    }
    if (t > kPeriod && t % kPeriod == kOverlap) {
      for (const double difference : sent) global -= difference / kWorkers;
      replica.w = {static_cast<float>(global), static_cast<float>(global)};
      for (int m = 0; m < kWorkers; ++m) {
        x[m] = kOwn * x[m] + (1 - kOwn) * global;
        unsent[m] *= kOwn;
        workers[m]->Mix(w_, replica.spans(), kOwn);
        EXPECT_NEAR(workers[m]->parameters()[0][1], x[m], 1e-5) << t;
        ++exchanges;
      }
    }
  }
  EXPECT_EQ(exchanges, 9 * kWorkers);
  EXPECT_NEAR(global, 1, 0.2) << "the mean of the workers' optima";
}

TEST_F(StreamingStepsTest, UnpushedUpdatesSurviveASkippedStep) {
  Values replica = {{8, 8}, {100}};
  streaming_.Follow(Step{0}, replica.spans());
  AddToX(-2, -10);
  streaming_.Take(w_);
  replica = {{20, 20}, {40}};
  streaming_.Follow(Step{7}, replica.spans());
  EXPECT_EQ(ToValues(streaming_.parameters()), (Values{{20, 20}, {30}}));
  streaming_.Take(b_);
  EXPECT_THAT(streaming_.differences()[1], ElementsAre(10));

  replica = {{1, 1}, {1}};
  streaming_.Follow(Step{7}, replica.spans());
  EXPECT_EQ(ToValues(streaming_.parameters()), (Values{{20, 20}, {30}}))
      << "follows step 7 already";
  streaming_.Forget();
  streaming_.Follow(Step{7}, replica.spans());
  EXPECT_EQ(ToValues(streaming_.parameters()), replica);
}

TEST_F(StreamingStepsTest, ValuesThatAreNotFiniteBecomeThoseOfTheServers) {
  Values replica = {{8, 8}, {100}};
  streaming_.Follow(Step{0}, replica.spans());
  streaming_.parameters()[0][0] = std::numeric_limits<float>::infinity();
  streaming_.parameters()[1][0] = std::nanf("");
  streaming_.Take(w_);
  streaming_.Mix(w_, replica.spans(), 0.5);
  EXPECT_THAT(streaming_.parameters()[0], ElementsAre(8, 8));
  streaming_.Follow(Step{2}, replica.spans());
  EXPECT_EQ(ToValues(streaming_.parameters()), replica);
}

TEST_F(StreamingStepsTest, ARestoredStateGoesOnWithTheSameValues) {
  Values replica = {{8, 8}, {100}};
  streaming_.Follow(Step{3}, replica.spans());
  AddToX(-2, -10);
  StreamingSteps other(partition_);
  other.Restore(streaming_.state());
  replica.b = {50};
  other.Follow(Step{3}, replica.spans());
  EXPECT_EQ(ToValues(other.parameters()), (Values{{6, 6}, {90}}));
  other.Take(b_);
  EXPECT_THAT(other.differences()[1], ElementsAre(10));
}

}  // namespace
}  // namespace thinwire::client
