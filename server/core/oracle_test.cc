// Compares Shard with Oracle, a simple second implementation of the consistency rule, after every
// event of many random runs. The effects and the states of Shard and Oracle must be equal.
#include "server/core/testing/oracle.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/spec/rule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/testing/random_events.h"

namespace thinwire {
namespace {

constexpr int kRunsPerMode = 12000;
constexpr int kEventsPerRun = 48;
constexpr uint64_t kPlannedExamples = 200;

class OracleTest : public testing::Test {
 protected:
  using DrawRule = std::function<Rule(SeededRandom&)>;

  void RunMode(uint64_t first_seed, const DrawRule& draw_rule, const StalenessSpec& staleness = {},
               bool rule_changes = false, bool clips = false, bool shares_tensor = false) {
    for (int i = 0; i < kRunsPerMode; ++i) {
      const uint64_t seed = first_seed + i;
      SeededRandom random(seed);
      ShardOptions options = {.value_count = 2,
                              .rule = draw_rule(random),
                              .planned_examples = kPlannedExamples,
                              .staleness = staleness,
                              .publish = DrawPublish(random),
                              .clip_norm = clips ? 1.0 : 0,
                              .shares_tensor = shares_tensor};
      RunOne(options, seed, rule_changes);
      if (HasFailure()) FAIL() << "seed " << seed << "\n" << log_.str();
    }
    std::cout << kRunsPerMode << " runs of " << kEventsPerRun << " events:";
    for (const auto& [what, count] : seen_) std::cout << " " << what << " " << count;
    std::cout << "\n";
    // Each kind of result must have occurred often enough; otherwise the runs tested too little.
    for (const char* what : {"accept", "late", "fenced", "stale", "repeat", "refused", "again"}) {
      EXPECT_GT(seen_[what], kRunsPerMode / 20) << what;
    }
    EXPECT_GT(seen_["accept"], kRunsPerMode * 4);
    EXPECT_GT(seen_["answer"], kRunsPerMode * 8);
    EXPECT_GT(seen_["update"], kRunsPerMode);
    EXPECT_GT(seen_["opened"], kRunsPerMode / 2);
    EXPECT_GT(seen_["published"], kRunsPerMode / 2);
    for (const char* from : {"sync", "backup", "ssp", "async"}) {
      for (const char* to : {"sync", "backup", "ssp", "async"}) {
        const std::string change = absl::StrCat(from, "->", to);
        if (rule_changes && change != absl::StrCat(to, "->", from)) {
          EXPECT_GT(seen_[change], kRunsPerMode / 400) << change;
        }
      }
    }
    if (clips || shares_tensor) {
      EXPECT_GT(seen_["full"], kRunsPerMode);
      EXPECT_GT(seen_["full again"], kRunsPerMode);
    }
    if (staleness.policy == StalenessPolicy::kDrop) {
      EXPECT_GT(seen_["dropped"], kRunsPerMode);
    }
  }

 private:
  static std::optional<PublishOptions> DrawPublish(SeededRandom& random) {
    if (random.Percent(40)) return std::nullopt;
    PublishOptions publish;
    if (random.Percent(50)) publish.every = 1 + static_cast<uint32_t>(random.Below(4));
    return publish;
  }

  void RunOne(const ShardOptions& options, uint64_t seed, bool rule_changes) {
    const Rule& rule = options.rule;
    log_.str("");
    log_ << rule << ", " << options.staleness << "\n";
    const RecordingOptimizer optimizer(options.shares_tensor);
    Shard shard(options, optimizer, schedule_);
    Oracle oracle(options);
    RandomEvents events(rule, seed, rule_changes);
    for (int i = 0; i < kEventsPerRun && !HasFailure(); ++i) {
      const Event event = events.Next(shard);
      const Rule before = shard.rule();
      const bool full = shard.full();
      const Effects effects = shard.Apply(event);
      log_ << event << " -> " << effects << "\n";
      EXPECT_EQ(effects, oracle.Apply(event));
      Compare(rule, shard, oracle);
      if (options.publish.has_value() && shard.seeded()) ComparePublished(effects, shard, oracle);
      Count(effects);
      if (full && shard.full()) ++seen_["full again"];
      if (shard.rule().mode() != before.mode() && shard.open()) {
        ++seen_[std::string(before.mode()) + "->" + std::string(shard.rule().mode())];
      }
    }
    CompareUpdates(options.staleness, optimizer, oracle);
  }

  void Compare(const Rule& rule, const Shard& shard, const Oracle& oracle) {
    EXPECT_EQ(shard.version(), oracle.version());
    EXPECT_EQ(shard.frontier(), oracle.frontier());
    EXPECT_EQ(shard.open(), oracle.open());
    EXPECT_EQ(shard.rule(), oracle.rule());
    EXPECT_EQ(shard.BlockedReads(), oracle.BlockedReads());
    for (uint32_t w = 0; w < rule.workers; ++w) {
      EXPECT_EQ(shard.next(WorkerId{w}), oracle.Next(WorkerId{w})) << "of worker " << w;
    }
  }

  void ComparePublished(const Effects& effects, Shard& shard, const Oracle& oracle) {
    EXPECT_EQ(shard.log()->newest(), oracle.published());
    for (const ReadAnswer& answer : effects.answers) {
      if (!answer.form.published) continue;
      EXPECT_EQ(shard.Deltas(answer.form.held).back()->version, oracle.published());
      ++seen_["published"];
    }
  }

  void CompareUpdates(const StalenessSpec& staleness, const RecordingOptimizer& optimizer,
                      const Oracle& oracle) {
    // The quotients of the policy scale are rounded in fp32; all other sums are exact.
    const double tolerance = staleness.policy == StalenessPolicy::kScale ? 1e-6 : 0;
    ASSERT_EQ(optimizer.updates().size(), oracle.updates().size());
    for (size_t i = 0; i < oracle.updates().size(); ++i) {
      const RecordedUpdate& got = optimizer.updates()[i];
      const Oracle::Expected& want = oracle.updates()[i];
      ASSERT_EQ(got.sum.size(), want.sum.size());
      for (size_t j = 0; j < want.sum.size(); ++j) {
        EXPECT_NEAR(got.sum[j], want.sum[j], tolerance * want.sum[j]);
      }
      EXPECT_EQ(got.update.gradient_scale, static_cast<float>(want.factor / want.weight));
      EXPECT_EQ(got.update.measured, want.measured);
      EXPECT_EQ(got.update.number, i + 1);
      EXPECT_EQ(got.update.learning_rate,
                static_cast<float>(schedule_.Rate(want.examples_before, kPlannedExamples) *
                                   want.rate_factor));
    }
    seen_["update"] += oracle.updates().size();
  }

  void Count(const Effects& effects) {
    if (effects.opened) ++seen_["opened"];
    seen_["answer"] += effects.answers.size();
    seen_["round"] += effects.rounds.size();
    if (effects.full_round.has_value()) ++seen_["full"];
    if (!effects.judgement.has_value()) return;
    if (effects.judgement->dropped) ++seen_["dropped"];
    std::ostringstream verdict;
    verdict << effects.judgement->verdict;
    ++seen_[effects.judgement->again ? "again" : verdict.str()];
  }

  const Schedule schedule_ =
      Schedule::Make({.kind = ScheduleKind::kPolynomial, .learning_rate = 1}).value();
  std::ostringstream log_;  // the events of the current run
  std::map<std::string, int> seen_;
};

uint32_t Workers(SeededRandom& random) { return 1 + static_cast<uint32_t>(random.Below(4)); }

TEST_F(OracleTest, AgreesInSync) {
  RunMode(1000000, [](SeededRandom& random) { return Rule::Sync(Workers(random)); });
}

TEST_F(OracleTest, AgreesInOrderedSync) {
  RunMode(2000000, [](SeededRandom& random) { return Rule::Sync(Workers(random), true); });
}

TEST_F(OracleTest, AgreesInBackup) {
  RunMode(3000000, [](SeededRandom& random) {
    const uint32_t workers = 1 + Workers(random) % 4;
    return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
  });
}

TEST_F(OracleTest, AgreesOnClippedRounds) {
  RunMode(
      9000000, [](SeededRandom& random) { return Rule::Sync(Workers(random), random.Percent(50)); },
      {}, /*rule_changes=*/false, /*clips=*/true);
}

TEST_F(OracleTest, AgreesOnRoundsOfASharedTensor) {
  RunMode(
      10000000,
      [](SeededRandom& random) {
        const uint32_t workers = 1 + Workers(random) % 4;
        if (random.Percent(50)) return Rule::Sync(workers, random.Percent(50));
        return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
      },
      {}, /*rule_changes=*/false, /*clips=*/false, /*shares_tensor=*/true);
}

TEST_F(OracleTest, AgreesInSsp) {
  RunMode(4000000, [](SeededRandom& random) {
    const uint32_t workers = Workers(random);
    const uint64_t slack = random.Below(4);
    return Rule::Ssp(workers, slack, 1 + static_cast<uint32_t>(random.Below(4)));
  });
}

TEST_F(OracleTest, AgreesInAsync) {
  RunMode(5000000, [](SeededRandom& random) {
    const uint32_t workers = Workers(random);
    return Rule::Async(workers, 1 + static_cast<uint32_t>(random.Below(4)));
  });
}

TEST_F(OracleTest, AgreesOnDroppedGradients) {
  RunMode(6000000,
          [](SeededRandom& random) {
            return Rule::Async(Workers(random), 1 + static_cast<uint32_t>(random.Below(4)));
          },
          {.policy = StalenessPolicy::kDrop, .bound = 2});
}

TEST_F(OracleTest, AgreesOnScaledGradients) {
  RunMode(7000000,
          [](SeededRandom& random) {
            const uint32_t workers = Workers(random);
            return Rule::Ssp(workers, random.Below(4), 1 + static_cast<uint32_t>(random.Below(4)));
          },
          {.policy = StalenessPolicy::kScale});
}

TEST_F(OracleTest, AgreesWhenTheModeChanges) {
  RunMode(
      8000000, [](SeededRandom& random) { return thinwire::DrawRule(random, /*sync_only=*/false); },
      {},
      /*rule_changes=*/true);
}

}  // namespace
}  // namespace thinwire
