// Compares the updates of a shard with the staleness policy dcasgd with the formula of
// staleness/dcasgd.h, in many random runs. The test keeps a copy of every published version, which
// the shard finds in its version log instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "common/codec/payload.h"
#include "common/spec/rule.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/testing/oracle.h"
#include "server/core/testing/random_events.h"

namespace thinwire {
namespace {

using Floats = std::vector<float>;

constexpr size_t kValues = 24;
constexpr int kRuns = 1000;  // number of runs for each kind of delta
constexpr int kEvents = 60;
constexpr double kRate = 1.0 / 1024;
constexpr double kLambda = 1e-3;
constexpr double kAdaptiveLambda = 0.05;

class DelayCompensationTest : public testing::Test {
 protected:
  void RunAll(const PublishOptions& publish, double decay, uint64_t first_seed) {
    for (int i = 0; i < kRuns; ++i) {
      const uint64_t seed = first_seed + i;
      SeededRandom random(seed);
      const ShardOptions options = {.value_count = kValues,
                                    .rule = Rule::Async(2 + static_cast<uint32_t>(random.Below(3))),
                                    .sparse_updates = {.lazy_slots = random.Percent(50)},
                                    .staleness = {.policy = StalenessPolicy::kDcasgd,
                                                  .lambda = decay == 0 ? kLambda : kAdaptiveLambda,
                                                  .decay = decay},
                                    .publish = publish};
      RunOne(options, seed);
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    std::cout << compensated_count_ << " compensated and " << uncompensated_count_
              << " uncompensated gradients, " << fresh_count_ << " fresh ones\n";
    EXPECT_GT(compensated_count_, kRuns);
    EXPECT_GT(uncompensated_count_, kRuns);
    EXPECT_GT(fresh_count_, kRuns / 4);
    EXPECT_GT(corrected_value_count_, kRuns);
  }

 private:
  void RunOne(const ShardOptions& options, uint64_t seed) {
    Shard shard(options, *optimizer_, schedule_), replay(options, *optimizer_, schedule_);
    Oracle oracle(options);
    RandomEvents events(options.rule, seed);
    std::map<Version, Floats> history;
    std::vector<double> squares(
        kValues);  // the mean squares, with every sum of the formula written out
    for (int i = 0; i < kEvents && !HasFailure(); ++i) {
      const Event event = Widened(events.Next(shard), kValues);
      const Floats before(shard.masters().begin(), shard.masters().end());
      const Version version_before = shard.version();
      const bool seeded = shard.seeded();
      const std::shared_ptr<const VersionLog> log = seeded ? shard.log() : nullptr;
      Effects effects = shard.Apply(event);
      EXPECT_EQ(replay.Apply(event), effects);
      const auto* push = std::get_if<PushEvent>(&event);
      if (push != nullptr && shard.version() != version_before) {
        const double decay = options.staleness.decay;
        const Floats values = Values(push->payload);
        for (size_t v = 0; v < kValues; ++v) {
          // A sparse payload has entries for all values that are not 0.
          if (PayloadIsSparse(push->payload) && values[v] == 0) continue;
          squares[v] = decay * squares[v] + (1 - decay) * values[v] * values[v];
        }
        Compare(*push, *effects.judgement, *log, before, shard.masters(), history, squares, decay);
      }
      if (shard.seeded()) {
        history[shard.log()->newest()] = {shard.published().begin(), shard.published().end()};
      }
      if (effects.judgement.has_value()) effects.judgement->uncompensated = false;
      EXPECT_EQ(effects, oracle.Apply(event));
    }
    EXPECT_TRUE(std::ranges::equal(shard.masters(), replay.masters()));
  }

  void Compare(const PushEvent& push, const Judgement& judgement, const VersionLog& log,
               const Floats& before, std::span<const float> after,
               const std::map<Version, Floats>& history, const std::vector<double>& squares,
               double decay) {
    const bool stale = judgement.staleness > 0;
    const bool known = log.Contains(push.computed_version);
    EXPECT_EQ(judgement.uncompensated, stale && !known);
    if (!stale) ++fresh_count_;
    if (judgement.uncompensated) ++uncompensated_count_;
    if (stale && known) ++compensated_count_;
    const double weight = static_cast<double>(push.examples) / (push.examples + push.late_examples);
    const Floats values = Values(push.payload);
    for (size_t i = 0; i < kValues; ++i) {
      double g = values[i];
      if (stale && known) {
        const Floats& then = history.at(push.computed_version);
        const double lambda = decay == 0 ? kLambda : kAdaptiveLambda / std::sqrt(squares[i] + 1e-7);
        g += lambda * g * g * (double{before[i]} - then[i]);
      }
      if (std::abs(g - values[i]) > 1) ++corrected_value_count_;
      const double want = before[i] - kRate * push.rate_factor * weight * g;
      EXPECT_NEAR(after[i], want, 1e-4 * (1 + std::abs(want))) << "value " << i;
    }
  }

  // Plain gradient descent.
  const std::unique_ptr<const Optimizer> optimizer_ = MakeOptimizer({}).value();
  const Schedule schedule_ = Schedule::Make({.learning_rate = kRate}).value();
  int compensated_count_ = 0;
  int uncompensated_count_ = 0;
  int fresh_count_ = 0;
  int corrected_value_count_ = 0;  // values that the compensation changed by more than 1
};

TEST_F(DelayCompensationTest, AgreesWithTheFormulaWithExactDeltas) {
  RunAll({.every = 1}, /*decay=*/0, 1000000);
}

TEST_F(DelayCompensationTest, AgreesWithTheFormulaWithLossyDeltas) {
  RunAll({.codec = CodecSpec{.id = CodecId::kFp8E5m2}, .every = 2}, /*decay=*/0, 2000000);
}

TEST_F(DelayCompensationTest, AgreesWithTheFormulaOfMeanSquares) {
  RunAll({.every = 1}, /*decay=*/0.75, 3000000);
}

}  // namespace
}  // namespace thinwire
