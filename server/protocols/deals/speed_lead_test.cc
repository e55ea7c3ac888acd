#include "server/protocols/deals/speed_lead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// Three workers, and 8 local steps with 2 accumulated batches of 4 examples each.
class SpeedLeadTest : public testing::Test {
 protected:
  SpeedLeadTest() { dealer_.Advance(Step{0}, At(0)); }

  // WORKER takes STEP with EXAMPLES in SECONDS.
  void Record(uint32_t worker, uint64_t step, double seconds, uint32_t examples = 64) {
    Effects answered;
    answered.answers.push_back({.worker = WorkerId{worker}, .step = Step{step}});
    times_.Record(ReadEvent{}, answered, At(0));
    PushEvent push;
    push.worker = WorkerId{worker};
    push.step = Step{step};
    push.examples = examples;
    Effects pushed;
    pushed.judgement.emplace();
    pushed.judgement->verdict = Verdict::kAccept;
    times_.Record(push, pushed, At(seconds));
  }
  // All workers take the next four steps, in these times.
  void Take(const std::vector<double>& seconds, uint32_t examples = 64) {
    for (int i = 0; i < 4; ++i, ++step_) {
      for (uint32_t w = 0; w < seconds.size(); ++w) Record(w, step_, seconds[w], examples);
    }
  }
  bool Update() { return lead_.Update(times_, live_, Step{step_}); }
  // Returns the batches of the deal that is proposed now; none without a deal.
  std::vector<uint32_t> Batches() {
    const auto next = [this](WorkerId) { return Step{step_}; };
    seconds_ += 10;
    auto deal = dealer_.Propose(live_, {}, next, At(seconds_));
    if (!deal.has_value()) deal = dealer_.Propose(live_, {}, next, At(seconds_ + 2));
    dealer_.Commit();
    if (!deal.has_value()) return {};
    return {deal->batches().begin(), deal->batches().end()};
  }

  std::vector<WorkerId> live_ = {WorkerId{0}, WorkerId{1}, WorkerId{2}};
  StepTimes times_{3};
  Dealer dealer_{3, absl::Seconds(10)};
  SpeedLead lead_{{.batch_size = 4, .local = {.count = 8}, .accumulate = 2}, dealer_};
  uint64_t step_ = 0;
  double seconds_ = 100;
};

TEST_F(SpeedLeadTest, ASlowerWorkerTakesFewerLocalSteps) {
  Take({2, 1, 1.6});
  EXPECT_TRUE(Update());
  EXPECT_THAT(Batches(), ElementsAre(8, 16, 10)) << "4, 8 and 5 local steps";
  // The time of an example is the same with fewer local steps.
  for (uint64_t i = 0; i < 4; ++i, ++step_) {
    Record(0, step_, 1, 32);
    Record(1, step_, 1, 64);
    Record(2, step_, 1, 40);
  }
  EXPECT_FALSE(Update());
}

TEST_F(SpeedLeadTest, AVerySlowWorkerTakesOneLocalStep) {
  Take({100, 1, 1});
  EXPECT_TRUE(Update());
  EXPECT_THAT(Batches(), ElementsAre(2, 16, 16));
}

TEST_F(SpeedLeadTest, SmallDifferencesChangeNothing) {
  Take({1.05, 1, 1.04});
  EXPECT_FALSE(Update());
  EXPECT_TRUE(Batches().empty());
}

TEST_F(SpeedLeadTest, AWorkerThatIsFastAgainTakesAllLocalSteps) {
  Take({2, 1, 1});
  EXPECT_TRUE(Update());
  EXPECT_THAT(Batches(), ElementsAre(8, 16, 16));
  Take({1, 1, 1});
  Take({1, 1, 1});
  EXPECT_TRUE(Update());
  EXPECT_THAT(Batches(), ElementsAre(16, 16, 16));
}

TEST_F(SpeedLeadTest, AWorkerWithoutTimesIsAwaited) {
  Take({2, 1});
  EXPECT_FALSE(Update());
  live_.pop_back();
  EXPECT_TRUE(Update());
}

TEST_F(SpeedLeadTest, TheStepsOfADealAreMeasuredBeforeTheNextChoice) {
  EXPECT_FALSE(lead_.Due(Step{3}));
  EXPECT_TRUE(lead_.Due(Step{4}));
  Take({2, 1, 1});
  EXPECT_TRUE(Update());
  // The deal begins at least 8 steps after the first one.
  EXPECT_FALSE(lead_.Due(Step{11}));
  EXPECT_TRUE(lead_.Due(Step{12}));
}

}  // namespace
}  // namespace thinwire
