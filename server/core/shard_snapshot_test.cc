// Saves shards at random moments of random runs, restores them, and applies the same events to the
// saved and the restored shard. Both must have the same effects and bits. A third shard, which is
// never saved, shows that saving has no effect.
#include "server/core/shard_snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/memory/array_bytes.h"
#include "common/spec/rule.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/testing/random_events.h"
#include "server/core/testing/random_shard.h"

namespace thinwire {
namespace {

constexpr size_t kValues = 24;
constexpr int kRuns = 4000;
constexpr int kEvents = 60;

std::vector<std::byte> BytesOf(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

class ShardSnapshotTest : public testing::Test {
 protected:
  void RunOne(uint64_t seed) {
    SeededRandom random(seed);
    const RandomShard setting = DrawShard(random, kValues);
    const auto undisturbed = setting.Make();
    const auto saved = setting.Make();
    std::unique_ptr<Shard> restored;
    std::vector<std::pair<ShardSnapshot, std::vector<std::byte>>> snapshots;
    RandomEvents events(setting.options.rule, seed, /*rule_changes=*/random.Percent(50));
    for (int i = 0; i < kEvents && !HasFailure(); ++i) {
      const Event event = setting.NextEvent(events, *undisturbed);
      const Effects effects = undisturbed->Apply(event);
      EXPECT_EQ(saved->Apply(event), effects) << event;
      ExpectEqual(*saved, *undisturbed, setting);
      if (restored != nullptr) {
        EXPECT_EQ(restored->Apply(event), effects) << event;
        ExpectEqual(*restored, *undisturbed, setting);
        ++compared_;
      }
      if (!saved->CanSave() || !random.Percent(15)) continue;
      snapshots.emplace_back(saved->Save(), BytesOf(saved->masters()));
      restored = setting.Make();
      const absl::Status status = restored->Restore(snapshots.back().first);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(restored->Save(), snapshots.back().first);
      ExpectEqual(*restored, *undisturbed, setting);
      Count(setting, snapshots.back().first);
    }
    for (const auto& [snapshot, masters] : snapshots) {
      EXPECT_EQ(snapshot.store.masters.ToVector(), masters) << "later updates changed a snapshot";
    }
  }

  void ExpectEqual(const Shard& a, const Shard& b, const RandomShard& setting) {
    EXPECT_EQ(BytesOf(a.masters()), BytesOf(b.masters()));
    EXPECT_EQ(BytesOf(a.averages()), BytesOf(b.averages()));
    EXPECT_EQ(a.BlockedReads(), b.BlockedReads());
    EXPECT_EQ(a.version(), b.version());
    EXPECT_EQ(a.saturated_updates(), b.saturated_updates());
    EXPECT_EQ(a.selected_list(), b.selected_list());
    if (!setting.options.publish.has_value() || !a.seeded()) return;
    EXPECT_EQ(BytesOf(a.published()), BytesOf(b.published()));
    EXPECT_EQ(a.log()->newest(), b.log()->newest());
  }

  void Count(const RandomShard& setting, const ShardSnapshot& snapshot) {
    const SparseUpdateSpec& sparse = setting.options.sparse_updates;
    std::ostringstream optimizer;
    optimizer << setting.kind;
    ++seen_[optimizer.str()];
    ++seen_[std::string(setting.options.rule.mode())];
    const StalenessPolicy policy = setting.options.staleness.policy;
    ++seen_[std::string(kStalenessPolicyNames[static_cast<size_t>(policy)])];
    if (sparse.lazy_slots) ++seen_["lazy slots"];
    if (!snapshot.store.updater.average.empty()) ++seen_["average"];
    if (sparse.selection_density.has_value()) {
      ++seen_[sparse.unselected_owner == UnselectedOwner::kWorkers ? "returned" : "kept"];
    }
    if (setting.options.publish.has_value()) {
      ++seen_[setting.options.publish->codec.has_value() ? "codec deltas" : "exact deltas"];
    }
    if (snapshot.store.version.value > 0) ++seen_["updated"];
    if (snapshot.rule.has_value()) ++seen_["changed rule"];
    if (snapshot.next_rule.has_value()) ++seen_["next rule"];
    for (const WorkerRecord& row : snapshot.workers) {
      if (row.waiting.has_value()) ++seen_["waiting read"];
    }
  }

  std::map<std::string, int> seen_;
  int compared_ = 0;  // number of events after which a restored shard was compared
};

TEST_F(ShardSnapshotTest, ARestoredShardContinuesWithTheSameEffectsAndBits) {
  for (int run = 0; run < kRuns; ++run) {
    RunOne(1000000 + run);
    if (HasFailure()) FAIL() << "seed " << 1000000 + run;
  }
  for (const auto& [what, count] : seen_) std::cout << what << " " << count << ", ";
  std::cout << compared_ << " compared events\n";
  EXPECT_GT(compared_, kRuns * 10);
  for (const char* what :
       {"sgd",   "momentum",     "nesterov",     "adam",    "adamw",        "adagrad",
        "sync",  "backup",       "ssp",          "async",   "lazy slots",   "returned",
        "kept",  "codec deltas", "exact deltas", "updated", "waiting read", "drop",
        "scale", "changed rule", "next rule",    "average"}) {
    EXPECT_GT(seen_[what], kRuns / 20) << what;
  }
}

// A shard of two workers with all kinds of arrays, after one update.
class SnapshotOfAllArraysTest : public testing::Test {
 protected:
  SnapshotOfAllArraysTest() {
    options_.value_count = 4;
    options_.rule = Rule::Sync(2);
    options_.sparse_updates = {.lazy_slots = true, .selection_density = 0.5};
    options_.publish.emplace();
    Shard shard(options_, *optimizer_, schedule_);
    shard.Apply(SeedEvent{Fp32Payload({1, 2, 3, 4})});
    for (uint32_t w = 0; w < 2; ++w) {
      shard.Apply(workers_[w].Join());
      shard.Apply(workers_[w].Read(0));
    }
    EXPECT_TRUE(shard.CanSave());
    shard.Apply(workers_[0].Push(0, 1, {1, 2, 3, 4}));
    EXPECT_FALSE(shard.CanSave()) << "a gradient waits for its update";
    shard.Apply(workers_[1].Push(0, 1, {1, 2, 3, 4}));
    EXPECT_TRUE(shard.CanSave());
    snapshot_ = shard.Save();
  }

  absl::Status Restore(const ShardSnapshot& snapshot) {
    Shard shard(options_, *optimizer_, schedule_);
    return shard.Restore(snapshot);
  }

  ShardOptions options_;
  const std::unique_ptr<const Optimizer> optimizer_ =
      MakeOptimizer({.kind = OptimizerKind::kAdam, .parameter_average = 0.9}).value();
  const Schedule schedule_ = ConstantRate();
  const FakeWorker workers_[2] = {{WorkerId{0}}, {WorkerId{1}}};
  ShardSnapshot snapshot_;
};

TEST_F(SnapshotOfAllArraysTest, AnUnseededShardCannotBeSaved) {
  EXPECT_FALSE(Shard(options_, *optimizer_, schedule_).CanSave());
}

TEST_F(SnapshotOfAllArraysTest, AReaderOfAnOlderVersionEndsWithTheSameParameters) {
  Shard shard(options_, *optimizer_, schedule_);
  ASSERT_TRUE(shard.Restore(snapshot_).ok());
  const DeltaChain deltas = shard.Deltas(Version{0});
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0]->kind, PublishedDelta::Kind::kFull);
  const std::vector<float> values = Values(deltas[0]->payload, options_.value_count);
  EXPECT_EQ(BytesOf(values), BytesOf(shard.published()));
}

TEST_F(SnapshotOfAllArraysTest, ASnapshotThatDoesNotFitIsRefused) {
  using Change = void (*)(ShardSnapshot&);
  const std::pair<Change, const char*> cases[] = {
      {[](ShardSnapshot& s) { s.workers.pop_back(); }, "workers: wrong number (expected 2, got 1)"},
      {[](ShardSnapshot& s) { s.workers[1].incarnation = {}; }, "worker 1: its fields contradict"},
      {[](ShardSnapshot& s) { s.workers[1].next = {}; }, "worker 1: its fields contradict"},
      {[](ShardSnapshot& s) {
         s.workers[1].waiting = {Step{9}, CodecId::kFp32};
       },
       "worker 1: its fields contradict"},
      {[](ShardSnapshot& s) { s.store.masters = {}; },
       "masters: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.store.updater.slots.pop_back(); },
       "slots: wrong number (expected 2, got 1)"},
      {[](ShardSnapshot& s) { s.store.updater.slots[1] = {}; },
       "slot_1: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.store.updater.average = {}; },
       "average: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.store.updater.last = {}; },
       "last: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.store.updater.remainder = {}; },
       "remainder: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.store.updater.selected_list = s.store.masters; },
       "selected_list: wrong size (expected 0 bytes, got 16)"},
      {[](ShardSnapshot& s) { s.store.saturated_updates = 2; },
       "saturated_updates: out of range (expected 0 to 1, got 2)"},
      {[](ShardSnapshot& s) { s.published->values = {}; },
       "published: wrong size (expected 16 bytes, got 0)"},
      {[](ShardSnapshot& s) { s.published->version = Version{2}; },
       "published version: too large (expected at most 1, got 2)"},
      {[](ShardSnapshot& s) { s.published.reset(); }, "published: missing"},
      {[](ShardSnapshot& s) {
         s.next_rule = {Rule::Async(2), Step{1}};
       },
       "next_rule: should be in force (expected a step above 1, got 1)"},
      {[](ShardSnapshot& s) {
         s.next_rule = {Rule::Async(3), Step{2}};
       },
       "rule: not valid for at most 2 workers (got 3 workers)"},
  };
  EXPECT_TRUE(Restore(snapshot_).ok());
  for (const auto& [change, message] : cases) {
    ShardSnapshot changed = snapshot_;
    change(changed);
    EXPECT_EQ(Restore(changed).message(), message);
  }
}

TEST_F(SnapshotOfAllArraysTest, PublishedParametersAreRefusedByAJobWithoutDeltas) {
  options_.publish.reset();
  EXPECT_EQ(Restore(snapshot_).message(), "published: the job publishes no deltas");
  snapshot_.published.reset();
  snapshot_.workers[0].read = Step{1};
  snapshot_.workers[0].waiting = {Step{1}, ReadForm::Published()};
  EXPECT_EQ(Restore(snapshot_).message(), "a read of deltas waits: the job publishes no deltas");
}

TEST_F(SnapshotOfAllArraysTest, ADamagedIndexListIsRefused) {
  options_.sparse_updates.unselected_owner = UnselectedOwner::kWorkers;
  snapshot_.store.updater.remainder = {};
  snapshot_.store.updater.selected_list = snapshot_.store.masters;
  EXPECT_EQ(Restore(snapshot_).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SnapshotOfMeanSquaresTest, ARestoredShardContinuesWithTheMeanSquares) {
  ShardOptions options = {.value_count = 4, .rule = Rule::Async(2)};
  options.staleness = {.policy = StalenessPolicy::kDcasgd, .lambda = 0.5, .decay = 0.75};
  options.publish = PublishOptions{.codec = CodecSpec{.id = CodecId::kFp16}, .every = 1};
  const PlainDescent optimizer;
  const Schedule schedule = ConstantRate();
  const FakeWorker workers[2] = {{WorkerId{0}}, {WorkerId{1}}};
  // Pushes of worker 1 are one version old.
  const auto push_both = [&](Shard& shard, uint64_t step, float value) {
    const uint64_t version = shard.version().value;
    for (uint32_t w = 0; w < 2; ++w) {
      PushEvent push = workers[w].Push(step, 1, {value, -value, 0, 3});
      push.computed_version = Version{version};
      const Effects effects = shard.Apply(push);
      EXPECT_EQ(effects.judgement->verdict, Verdict::kAccept);
      EXPECT_FALSE(effects.judgement->uncompensated);
      EXPECT_EQ(effects.judgement->staleness, w);
    }
  };
  Shard saved(options, optimizer, schedule);
  saved.Apply(SeedEvent{Fp32Payload({1, 2, 3, 4})});
  for (const FakeWorker& worker : workers) {
    saved.Apply(worker.Join());
    saved.Apply(worker.Read(0));
  }
  push_both(saved, 0, 2);
  const ShardSnapshot snapshot = saved.Save();
  // After the squares 4, 4, 0 and 9, twice: .25 * 4, then .75 * 1 + .25 * 4.
  std::vector<float> squares(4);
  snapshot.mean_squares.CopyTo(std::as_writable_bytes(std::span(squares)));
  EXPECT_EQ(squares, (std::vector<float>{1.75, 1.75, 0, 3.9375}));

  Shard restored(options, optimizer, schedule), without(options, optimizer, schedule);
  ASSERT_TRUE(restored.Restore(snapshot).ok());
  EXPECT_EQ(restored.Save(), snapshot);
  ShardSnapshot cleared = snapshot;
  std::ranges::fill(squares, 0.0f);
  cleared.mean_squares = CopyArray(std::as_bytes(std::span(squares)));
  ASSERT_TRUE(without.Restore(cleared).ok());
  for (Shard* shard : {&saved, &restored, &without}) push_both(*shard, 1, 1);
  EXPECT_EQ(BytesOf(restored.masters()), BytesOf(saved.masters()));
  EXPECT_NE(BytesOf(without.masters()), BytesOf(saved.masters())) << "the squares have an effect";
  EXPECT_EQ(restored.Save().mean_squares, saved.Save().mean_squares);

  cleared.mean_squares = {};
  Shard other(options, optimizer, schedule);
  EXPECT_EQ(other.Restore(cleared).message(),
            "mean_squares: wrong size (expected 16 bytes, got 0)");
  options.staleness.decay = 0;
  Shard none(options, optimizer, schedule);
  EXPECT_EQ(none.Restore(snapshot).message(),
            "mean_squares: wrong size (expected 0 bytes, got 16)");
}

}  // namespace
}  // namespace thinwire
