#include "sim/shard_ledger.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire::sim {
namespace {

constexpr size_t kCount = 4;

// A shard of a job with one worker, and its ledger.
class ShardLedgerTest : public ::testing::Test {
 protected:
  ShardLedgerTest() {
    Apply(SeedEvent{Fp32Payload(seed_)});
    Apply(process_.Join());
    Apply(process_.Read(0));
    ledger_.Begin(kWorker, process_.incarnation, Mass());
  }

  void Apply(const Event& event, LogSequence sequence = 0) {
    ledger_.Record(event, shard_.Apply(event), shard_, sequence);
  }
  // The process computes a gradient of two examples whose only value is VALUE. ARRIVES: its push does.
  void Compute(uint64_t step, float value, bool arrives) {
    ledger_.AddProduced(kWorker, process_.incarnation, {value, 2});
    if (arrives) Apply(PushOf(step, value));
  }
  PushEvent PushOf(uint64_t step, float value) const {
    std::vector<float> values(kCount);
    values[0] = value;
    PushEvent push = process_.PushNothing(step);
    push.examples = 2;
    push.payload = Fp32Payload(values);
    return push;
  }
  void Check(const Mass& residual = {}) {
    ledger_.CheckMass(kWorker, process_.incarnation, residual);
  }

  static constexpr WorkerId kWorker{0};
  const ShardOptions options_{.value_count = kCount, .rule = Rule::Async(1)};
  const FakeWorker process_{kWorker, Incarnation{1}};
  const GroupUpdate update_{std::make_shared<PlainDescent>(), ConstantRate()};
  const std::vector<float> seed_ = std::vector<float>(kCount);
  Shard shard_{options_, *update_.optimizer, update_.schedule};
  ShardLedger ledger_{options_, update_, seed_, /*tolerance=*/0};
};

using Violations = std::vector<std::string>;

TEST_F(ShardLedgerTest, AShardThatKeepsEveryGradientHasNoViolation) {
  Compute(0, 5, /*arrives=*/true);
  Compute(1, 7, /*arrives=*/true);
  Check();
  ledger_.CheckReplica(Generation{1}, Version{2}, shard_.masters());
  ledger_.Close(shard_);
  EXPECT_EQ(ledger_.violations(), Violations());
  EXPECT_EQ(ledger_.checked_masses(), 1u);
  EXPECT_EQ(ledger_.checked_replicas(), 1u);
}

TEST_F(ShardLedgerTest, AGradientThatIsNowhereIsFound) {
  Compute(0, 5, /*arrives=*/false);
  Check({2, 2});
  EXPECT_EQ(ledger_.violations(),
            Violations{"worker 0/1: the shard contains 0 of 0 examples and the residual 2 of 2 "
                       "examples (expected 5 of 2 examples together)"});
}

TEST_F(ShardLedgerTest, AnotherUpdateIsFound) {
  Compute(0, 5, /*arrives=*/true);
  shard_.Apply(PushOf(1, 3));
  ledger_.Close(shard_);
  EXPECT_EQ(ledger_.violations(),
            (Violations{"the version differs from the number of updates",
                        "a replay of the accepted pushes gives other parameters"}));
}

TEST_F(ShardLedgerTest, UndonePushesBelongToTheAccountOnlyWhenTheyAreJudgedAgain) {
  Compute(0, 5, /*arrives=*/true);
  ShardOptions options = options_;
  options.generation = Generation{2};
  Shard start(options, *update_.optimizer, update_.schedule);
  start.Apply(SeedEvent{Fp32Payload(seed_)});
  ledger_.RollBack(start, Generation{2});
  Check();
  EXPECT_EQ(ledger_.undone_count(), 1u);
  ledger_.CheckVerdict({kWorker, process_.incarnation, Step{0}}, Verdict::kAccept);
  PushEvent again = PushOf(0, 5);
  again.generation = Generation{2};
  ReadEvent read = process_.Read(0);
  read.generation = Generation{2};
  start.Apply(process_.Join());
  start.Apply(read);
  ledger_.Record(again, start.Apply(again), start, 0);
  Check();
  EXPECT_EQ(ledger_.undone_count(), 0u);
  EXPECT_EQ(ledger_.violations(), Violations());
}

TEST_F(ShardLedgerTest, AVerdictThatIsNotTrueIsFound) {
  Compute(0, 5, /*arrives=*/true);
  ledger_.CheckVerdict({kWorker, process_.incarnation, Step{0}}, Verdict::kLate);
  ledger_.CheckVerdict({kWorker, process_.incarnation, Step{1}}, Verdict::kAccept);
  ledger_.CheckVerdict({kWorker, process_.incarnation, Step{2}}, Verdict::kEarly);
  EXPECT_EQ(ledger_.violations(),
            (Violations{"the late push of w0/1 step 0 is in the shard",
                        "the acknowledged push of w0/1 step 1 is not in the shard",
                        "the push of w0/1 step 2 got an unexpected verdict"}));
}

TEST_F(ShardLedgerTest, AnUpdateOfSeveralCodecsIsFound) {
  ShardOptions options = options_;
  options.rule = Rule::Async(1, /*fold_every=*/2);
  Shard shard(options, *update_.optimizer, update_.schedule);
  ShardLedger ledger(options, update_, seed_, /*tolerance=*/0);
  PushEvent second = PushOf(1, 7);
  second.payload = SparsePayload(Values(second.payload));
  for (const Event& event : std::vector<Event>{SeedEvent{Fp32Payload(seed_)}, process_.Join(),
                                               process_.Read(0), PushOf(0, 5), second}) {
    ledger.Record(event, shard.Apply(event), shard, /*sequence=*/0);
  }
  EXPECT_EQ(ledger.violations(), Violations{"the gradients of an update have several codecs"});
  EXPECT_EQ(ledger.codec_count(), 1u);
}

TEST_F(ShardLedgerTest, ALostRecordIsFound) {
  Apply(PushOf(0, 5), /*sequence=*/9);
  ledger_.CheckRecovered(&shard_, 9);
  EXPECT_EQ(ledger_.violations(), Violations());
  ledger_.CheckRecovered(&shard_, 8);
  EXPECT_EQ(ledger_.violations(),
            Violations{"record 9 had effects and is lost (the log ends at record 8)"});
}

}  // namespace
}  // namespace thinwire::sim
