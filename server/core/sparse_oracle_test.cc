// Compares a shard with sparse updates (lazy slots, gTop-k) with a simple model of such a shard in
// many random runs. Oracle (testing/oracle.h) determines which gradients each update contains. The
// model applies the formulas of docs/optimizers.md to these gradients, value by value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "common/codec/sparse/index_list.h"
#include "common/spec/rule.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/shard.h"
#include "server/core/testing/oracle.h"
#include "server/core/testing/random_events.h"

namespace thinwire {
namespace {

constexpr size_t kValues = 24;
constexpr int kRuns = 2000;  // number of runs for each setting
constexpr int kEvents = 60;
constexpr uint64_t kPlannedExamples = 200;
constexpr double kMomentum = 0.75;
constexpr double kWeightDecay = 0.03125;

// A simple model of a shard that uses gradient descent with momentum and weight decay.
class Model {
 public:
  explicit Model(const SparseUpdateSpec& sparse_updates) : sparse_updates_(sparse_updates) {}

  void Apply(const Oracle::Expected& update, uint64_t number, float rate) {
    const auto scale = static_cast<float>(1.0 / static_cast<double>(update.weight));
    std::vector<float> gradient(kValues);
    for (size_t i = 0; i < kValues; ++i) gradient[i] = scale * static_cast<float>(update.sum[i]);
    if (sparse_updates_.selection_density.has_value()) gradient = Selected(gradient);
    for (size_t i = 0; i < kValues; ++i) {
      if (sparse_updates_.lazy_slots && gradient[i] == 0) continue;
      double missed = static_cast<double>(number - 1 - last_[i]);
      if (!sparse_updates_.lazy_slots) missed = 0;
      masters_[i] *= std::pow(1 - rate * kWeightDecay, missed);
      velocity_[i] = kMomentum * velocity_[i] + gradient[i] + kWeightDecay * masters_[i];
      masters_[i] -= rate * velocity_[i];
      last_[i] = number;
    }
  }

  const std::vector<double>& masters() const { return masters_; }
  // Returns the indices that the last update selected, in ascending order.
  const std::vector<uint32_t>& selected() const { return selected_; }

 private:
  // Adds GRADIENT to the remainder, which are the values that earlier updates did not select.
  // Returns the values that this update selects, and 0 for all other values. Adds in fp32 like the
  // shard: other rounding could reverse the order of nearly equal values.
  std::vector<float> Selected(const std::vector<float>& gradient) {
    std::vector<size_t> order;
    for (size_t i = 0; i < kValues; ++i) {
      remainder_[i] += gradient[i];
      order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      return std::abs(remainder_[a]) > std::abs(remainder_[b]);
    });
    std::vector<float> selected(kValues);
    const auto taken =
        static_cast<size_t>(std::lround(*sparse_updates_.selection_density * kValues));
    selected_.clear();
    for (size_t j = 0; j < taken; ++j) {
      selected[order[j]] = std::exchange(remainder_[order[j]], 0.0f);
      if (selected[order[j]] != 0) selected_.push_back(static_cast<uint32_t>(order[j]));
    }
    std::ranges::sort(selected_);
    if (sparse_updates_.unselected_owner == UnselectedOwner::kWorkers)
      remainder_.assign(kValues, 0.0f);
    return selected;
  }

  const SparseUpdateSpec sparse_updates_;
  std::vector<double> masters_ = std::vector<double>(kValues, 100);
  std::vector<double> velocity_ = std::vector<double>(kValues);
  std::vector<uint64_t> last_ = std::vector<uint64_t>(kValues);
  std::vector<float> remainder_ = std::vector<float>(kValues);
  std::vector<uint32_t> selected_;
};

class SparseOracleTest : public testing::Test {
 protected:
  void RunAll(const SparseUpdateSpec& sparse_updates, uint64_t first_seed) {
    for (int i = 0; i < kRuns; ++i) {
      SeededRandom random(first_seed + i);
      const bool sync = sparse_updates.unselected_owner == UnselectedOwner::kWorkers;
      RunOne(DrawRule(random, sync), sparse_updates, first_seed + i);
      if (HasFailure()) FAIL() << "seed " << first_seed + i << "\n" << log_.str();
    }
    std::cout << updates_ << " updates, " << accepted_ << " accepted pushes, " << answers_
              << " answered reads, " << compared_masters_ << " compared arrays\n";
    EXPECT_GT(updates_, kRuns);
    EXPECT_GT(accepted_, kRuns);
    EXPECT_GT(answers_, kRuns);
    EXPECT_GT(compared_masters_, kRuns * 10);
  }

 private:
  void RunOne(const Rule& rule, const SparseUpdateSpec& sparse_updates, uint64_t seed) {
    log_.str("");
    log_ << rule << "\n";
    ShardOptions options;
    options.value_count = kValues;
    options.rule = rule;
    options.planned_examples = kPlannedExamples;
    options.sparse_updates = sparse_updates;
    Shard shard(options, *optimizer_, schedule_);
    Oracle oracle(options);
    Model model(sparse_updates);
    RandomEvents events(rule, seed);
    size_t applied = 0;
    for (int i = 0; i < kEvents && !HasFailure(); ++i) {
      const Event event = Widened(events.Next(shard), kValues);
      const Effects effects = shard.Apply(event);
      log_ << event << " -> " << effects << "\n";
      EXPECT_EQ(effects, oracle.Apply(event));
      for (; applied < oracle.updates().size(); ++applied) {
        const Oracle::Expected& update = oracle.updates()[applied];
        model.Apply(update, applied + 1,
                    static_cast<float>(schedule_.Rate(update.examples_before, kPlannedExamples) *
                                       update.rate_factor));
      }
      if (shard.seeded()) CompareMasters(shard.masters(), model.masters());
      Count(effects);
      if (sparse_updates.unselected_owner == UnselectedOwner::kWorkers) {
        EXPECT_EQ(DecodeIndexList(shard.selected_list(), kValues).value(), model.selected());
      } else {
        EXPECT_TRUE(shard.selected_list().empty());
      }
    }
    updates_ += static_cast<int>(applied);
  }

  void Count(const Effects& effects) {
    answers_ += static_cast<int>(effects.answers.size());
    const bool accepted = effects.judgement.has_value() &&
                          effects.judgement->verdict == Verdict::kAccept &&
                          !effects.judgement->again;
    if (accepted) ++accepted_;
  }

  void CompareMasters(std::span<const float> got, const std::vector<double>& want) {
    ++compared_masters_;
    for (size_t i = 0; i < kValues; ++i) {
      EXPECT_NEAR(got[i], want[i], 1e-5 * (1000 + std::abs(want[i]))) << "value " << i;
    }
  }

  const std::unique_ptr<const Optimizer> optimizer_ =
      MakeOptimizer(
          {.kind = OptimizerKind::kMomentum, .momentum = kMomentum, .weight_decay = kWeightDecay})
          .value();
  const Schedule schedule_ =
      Schedule::Make({.kind = ScheduleKind::kPolynomial, .learning_rate = 0.5}).value();
  std::ostringstream log_;  // the events of the current run
  int updates_ = 0;
  int accepted_ = 0;
  int answers_ = 0;
  int compared_masters_ = 0;
};

TEST_F(SparseOracleTest, AgreesOnDenseUpdates) { RunAll({}, 1000000); }

TEST_F(SparseOracleTest, AgreesOnLazySlots) { RunAll({.lazy_slots = true}, 2000000); }

TEST_F(SparseOracleTest, AgreesOnASelection) { RunAll({.selection_density = 0.125}, 3000000); }

TEST_F(SparseOracleTest, AgreesOnASelectionWithLazySlots) {
  RunAll({.lazy_slots = true, .selection_density = 0.125}, 4000000);
}

TEST_F(SparseOracleTest, AgreesOnASelectionWithRemaindersAtTheWorkers) {
  RunAll({.selection_density = 0.125, .unselected_owner = UnselectedOwner::kWorkers}, 5000000);
}

}  // namespace
}  // namespace thinwire
