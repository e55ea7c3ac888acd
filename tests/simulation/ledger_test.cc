#include "tests/simulation/ledger.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "tests/simulation/job.h"

namespace thinwire::simulation {
namespace {

// A shard of a job with one worker, and its ledger.
class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() { Apply(SeedEvent{Fp32Payload(seed_)}); }

  static Job MakeJob() {
    Job job;
    job.rule = Rule::Async(1);
    Complete(job);
    return job;
  }

  void Apply(const Event& event) {
    ledger_.Record(event, shard_.Apply(event), shard_, /*sequence=*/0);
  }
  // PROCESS joins. It has no residual, or restores the residual that belongs to ACCOUNT.
  void Join(const FakeWorker& process, std::optional<Mass> account = std::nullopt) {
    Apply(process.Join());
    Apply(process.Read(0));
    if (account.has_value()) {
      ledger_.Reset(kWorker, process.incarnation, account);
    } else {
      ledger_.CloseUnanswered(kWorker, process.incarnation);
    }
  }
  // PROCESS computes a gradient of two examples whose only value is VALUE. ARRIVES: its push does.
  void Compute(const FakeWorker& process, uint64_t step, float value, bool arrives) {
    ledger_.AddProduced(kWorker, process.incarnation, {value, 2});
    std::vector<float> values(kShardValues);
    values[0] = value;
    PushEvent push = process.PushNothing(step);
    push.examples = 2;
    push.payload = Fp32Payload(values);
    if (arrives) Apply(push);
  }

  static constexpr WorkerId kWorker{0};
  const FakeWorker first_{kWorker, Incarnation{1}};
  const FakeWorker second_{kWorker, Incarnation{2}};
  const FakeWorker third_{kWorker, Incarnation{3}};
  const Job job_ = MakeJob();
  const std::vector<float> seed_ = std::vector<float>(kShardValues);
  Shard shard_{job_.shard, *job_.optimizer, *job_.schedule};
  ShardLedger ledger_{job_, seed_};
};

// The first process has not noticed its successor yet, and ends after the successor has saved its
// residual.
TEST_F(LedgerTest, ASavedAccountHasNoMassOfAnEarlierProcessThatStillRuns) {
  Join(first_);
  Compute(first_, 0, 5, /*arrives=*/true);
  Compute(first_, 1, 28, /*arrives=*/false);
  Join(second_);
  Compute(second_, 1, 7, /*arrives=*/true);
  const Mass saved = ledger_.AccountOf(kWorker, second_.incarnation);
  EXPECT_EQ(saved.values, 12);
  EXPECT_EQ(saved.examples, 4);
  ledger_.AddUnanswered({kWorker, first_.incarnation, Step{1}}, {28, 2});
  Join(third_, saved);
  Compute(third_, 2, 3, /*arrives=*/true);
  ledger_.Close(shard_);
  EXPECT_EQ(ledger_.violations(), std::vector<std::string>());
}

TEST_F(LedgerTest, ASavedAccountHasNoMassThatTheProcessHasGivenUp) {
  Join(first_);
  Compute(first_, 0, 5, /*arrives=*/true);
  Compute(first_, 1, 28, /*arrives=*/false);
  ledger_.AddUnanswered({kWorker, first_.incarnation, Step{1}}, {28, 2});
  const Mass saved = ledger_.AccountOf(kWorker, first_.incarnation);
  EXPECT_EQ(saved.values, 5);
  EXPECT_EQ(saved.examples, 2);
  Join(second_, saved);
  Compute(second_, 2, 3, /*arrives=*/false);
  ledger_.AddUnanswered({kWorker, second_.incarnation, Step{2}}, {3, 2});
  EXPECT_EQ(ledger_.AccountOf(kWorker, second_.incarnation).values, 5);
  ledger_.Close(shard_);
  EXPECT_EQ(ledger_.violations(), std::vector<std::string>());
}

TEST_F(LedgerTest, AnEarlierProcessMayReceiveTheVerdictOfAnUndonePush) {
  Shard start{job_.shard, *job_.optimizer, *job_.schedule};
  start.Apply(SeedEvent{Fp32Payload(seed_)});
  const GradientId undone = {kWorker, first_.incarnation, Step{0}};
  Join(first_);
  Compute(first_, 0, 5, /*arrives=*/true);
  ledger_.RollBack(start, Generation{1});
  ledger_.Reset(kWorker, second_.incarnation, Mass());
  ledger_.CheckVerdict(undone, Verdict::kAccept);
  EXPECT_EQ(ledger_.violations(), std::vector<std::string>());
  ledger_.CheckVerdict({kWorker, first_.incarnation, Step{1}}, Verdict::kAccept);
  EXPECT_EQ(ledger_.violations(),
            std::vector<std::string>{"the acknowledged push of w0/1 step 1 is not in the shard"});
}

TEST_F(LedgerTest, AGradientThatIsNowhereIsFound) {
  Join(first_);
  Compute(first_, 0, 5, /*arrives=*/false);
  ledger_.Close(shard_);
  EXPECT_EQ(ledger_.violations(),
            std::vector<std::string>{
                "worker 0: the shard contains 0 of 0 examples, but 5 of 2 examples were "
                "produced and neither lost nor rolled back"});
}

}  // namespace
}  // namespace thinwire::simulation
