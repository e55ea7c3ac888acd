#include "cli/doctor/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace thinwire {
namespace {

constexpr uint64_t kValues = 4096;

class CandidatesTest : public testing::Test {
 protected:
  // Returns the candidates of the job in TEXT.
  std::vector<CodecCandidate> Measure(std::string_view text) {
    SteadyClock clock;
    const auto job = ParseJobText(text, "job.textproto");
    EXPECT_TRUE(job.ok()) << job.status();
    const auto candidates = MeasureCandidates(*job, kValues, clock);
    EXPECT_TRUE(candidates.ok()) << candidates.status();
    return *candidates;
  }
  static const CodecCandidate* Find(const std::vector<CodecCandidate>& candidates,
                                    std::string_view push, std::string_view pull) {
    const auto found = std::ranges::find_if(
        candidates, [&](const auto& c) { return c.push == push && c.pull == pull; });
    return found == candidates.end() ? nullptr : &*found;
  }
};

TEST_F(CandidatesTest, ParametersComeBackInTheCodecOfTheGradients) {
  const auto candidates = Measure("");
  const CodecCandidate* fp32 = Find(candidates, "fp32", "fp32");
  ASSERT_NE(fp32, nullptr);
  EXPECT_NEAR(fp32->push_cost.bytes, 4, .01);
  EXPECT_EQ(fp32->error, 0);
  const CodecCandidate* fp8 = Find(candidates, "fp8_e4m3", "fp8_e4m3");
  ASSERT_NE(fp8, nullptr);
  EXPECT_NEAR(fp8->pull_cost.bytes, 1, .01);
  EXPECT_GT(fp8->error, 0.001);
  EXPECT_LT(fp8->error, 0.1);
  EXPECT_GT(candidates.size(), 6u);
}

TEST_F(CandidatesTest, TheJobsOwnPairIsIncluded) {
  const auto candidates = Measure("compression { push: topk density: 0.05 pull: bf16 }");
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates[0].push, "topk");
  EXPECT_EQ(candidates[0].pull, "bf16");
  EXPECT_EQ(candidates[0].push_cost.spec.density, 0.05);
  EXPECT_NEAR(candidates[0].pull_cost.bytes, 2, .01);
  EXPECT_NE(Find(candidates, "bf16", "bf16"), nullptr) << "the setting density is dropped";
}

TEST_F(CandidatesTest, WhereDeltasAreRefusedTheJobsPullCodecStays) {
  const auto candidates =
      Measure("optimization { optimizer: momentum } compression { pull: bf16 }");
  EXPECT_EQ(Find(candidates, "topk", "delta_topk"), nullptr);
  EXPECT_NE(Find(candidates, "topk", "bf16"), nullptr);
}

TEST_F(CandidatesTest, ExactDeltasAreNotPredicted) {
  const auto candidates = Measure("compression { push: topk pull: delta }");
  EXPECT_EQ(Find(candidates, "topk", "delta"), nullptr);
  EXPECT_NE(Find(candidates, "fp32", "fp32"), nullptr);
}

}  // namespace
}  // namespace thinwire
