#include "server/protocols/sums/round_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/ids.h"

namespace thinwire {
namespace {

const std::vector<ServerId> kServers = {ServerId{0}, ServerId{2}, ServerId{3}};

RoundPart Of(uint64_t step, double sum) { return {Step{step}, {{0, {.update = sum}}}}; }
// The member has closed the round without a gradient.
RoundPart Nothing(uint64_t step) { return {Step{step}, {}}; }

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

TEST_F(RoundSumTest, EachNumberHasItsOwnSum) {
  sum_.Add(0, {Step{0}, {{5, {.update = 1, .masters = 2}}, {9, {.update = 4, .masters = 8}}}});
  sum_.Add(2, {Step{0}, {{9, {.update = 16, .masters = 32}}}});
  EXPECT_EQ(
      sum_.Add(3, Nothing(0)),
      (RoundPart{Step{0}, {{5, {.update = 1, .masters = 2}}, {9, {.update = 20, .masters = 40}}}}));
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
  sum_.Add(0, Nothing(5));
  sum_.Add(2, Of(3, 2));
  EXPECT_EQ(sum_.Add(3, Of(3, 4)), Of(3, 6));
  sum_.Add(2, Of(4, 3));
  EXPECT_EQ(sum_.Add(3, Of(5, 8)), Of(4, 3)) << "both others are ahead";
  EXPECT_EQ(sum_.Add(2, Of(5, 1)), Of(5, 9));
}

TEST(SumMessagesTest, ARoundTripKeepsTheSums) {
  const NumberedSums sums = {{0, {.update = 0.1}}, {7, {.update = 1e200, .masters = 3}}};
  SumMessages messages;
  SetSums(sums, messages);
  const auto read = SumsOf(messages);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, sums);
}

TEST(SumMessagesTest, SumsBelowZeroAndInfiniteSumsAreRefused) {
  for (const double wrong : {-1.0, HUGE_VAL, std::nan("")}) {
    SumMessages messages;
    SetSums({{0, {.update = wrong}}}, messages);
    EXPECT_EQ(SumsOf(messages).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    messages.Clear();
    SetSums({{0, {.masters = wrong}}}, messages);
    EXPECT_EQ(SumsOf(messages).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace thinwire
