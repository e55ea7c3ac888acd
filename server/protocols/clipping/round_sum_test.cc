#include "server/protocols/clipping/round_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/ids.h"

namespace thinwire {
namespace {

const std::vector<ServerId> kServers = {ServerId{0}, ServerId{2}, ServerId{3}};

FullRound Of(uint64_t step, double squared_norm) { return {Step{step}, squared_norm}; }

class RoundSumTest : public testing::Test {
 protected:
  RoundSum sum_{std::span<const ServerId>(kServers)};
};

TEST_F(RoundSumTest, AddsThePartsOfAllMembers) {
  EXPECT_EQ(sum_.Add(3, Of(0, 4)), std::nullopt);
  EXPECT_EQ(sum_.Add(0, Of(0, 1)), std::nullopt);
  EXPECT_EQ(sum_.newest(), std::nullopt);
  EXPECT_EQ(sum_.Add(2, Of(0, 2)), Of(0, 7));
  EXPECT_EQ(sum_.Add(0, Of(1, 1)), std::nullopt);
  EXPECT_EQ(sum_.newest(), Of(0, 7));
}

TEST_F(RoundSumTest, TheOrderOfArrivalDoesNotChangeTheBits) {
  const std::vector<double> parts = {1, 1e-16, 1e-16};
  RoundSum forward{std::span<const ServerId>(kServers)};
  RoundSum backward{std::span<const ServerId>(kServers)};
  for (size_t i = 0; i < 3; ++i) {
    forward.Add(kServers[i].value, Of(0, parts[i]));
    backward.Add(kServers[2 - i].value, Of(0, parts[2 - i]));
  }
  EXPECT_EQ(forward.newest(), backward.newest());
}

TEST_F(RoundSumTest, ARepeatedPartCountsOnce) {
  sum_.Add(0, Of(0, 1));
  sum_.Add(0, Of(0, 1));
  sum_.Add(2, Of(0, 2));
  EXPECT_EQ(sum_.Add(3, Of(0, 4)), Of(0, 7));
  EXPECT_EQ(sum_.Add(3, Of(0, 4)), std::nullopt);
}

TEST_F(RoundSumTest, AMemberThatIsAheadHadNoGradient) {
  sum_.Add(0, Of(5, 0));
  sum_.Add(2, Of(3, 2));
  EXPECT_EQ(sum_.Add(3, Of(3, 4)), Of(3, 6));
  sum_.Add(2, Of(4, 3));
  EXPECT_EQ(sum_.Add(3, Of(5, 8)), Of(4, 3)) << "both others are ahead";
  EXPECT_EQ(sum_.Add(2, Of(5, 1)), Of(5, 9));
}

TEST(PartOfTest, AShardFinishesFullAndEmptyRounds) {
  Effects effects;
  EXPECT_EQ(PartOf(effects), std::nullopt);
  effects.rounds = {{Step{3}, {WorkerId{0}}}};
  EXPECT_EQ(PartOf(effects), std::nullopt) << "it was full before";
  effects.rounds.push_back({Step{5}, {}});
  EXPECT_EQ(PartOf(effects), Of(5, 0));
  effects.rounds.clear();
  effects.full_round = Of(6, 2);
  EXPECT_EQ(PartOf(effects), Of(6, 2));
}

TEST(ClipFactorTest, LimitsTheNorm) {
  EXPECT_EQ(ClipFactor(10, 25), 1);
  EXPECT_EQ(ClipFactor(5, 25), 1);
  EXPECT_EQ(ClipFactor(1, 25), 0.2);
  EXPECT_EQ(ClipFactor(1, 0), 1);
}

}  // namespace
}  // namespace thinwire
