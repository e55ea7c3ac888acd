#include "server/protocols/membership/number_lead.h"

#include <initializer_list>

#include "common/spec/rule.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr absl::Duration kStartTimeout = absl::Seconds(60);

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

class NumberLeadTest : public testing::Test {
 protected:
  absl::StatusOr<uint32_t> Claim(std::initializer_list<uint32_t> kept, int seconds) {
    ClaimNumberRequest request;
    for (const uint32_t number : kept) request.add_kept(number);
    const absl::StatusOr<ClaimNumberReply> reply = lead_.Claim(request, At(seconds));
    if (!reply.ok()) return reply.status();
    return reply->worker();
  }
  void Join(uint32_t number, int seconds) {
    const auto incarnation = state_.membership.Assign(WorkerId{number}, At(seconds), At(seconds));
    ASSERT_TRUE(incarnation.ok() && incarnation->has_value());
    ASSERT_TRUE(state_.membership.Adopt(WorkerId{number}, **incarnation, At(seconds)).ok());
    JoinReply reply;
    lead_.FillIn(WorkerId{number}, reply);
  }

  JobState state_{{.job = "train", .run = RunId{9}}, Rule::Sync(3), {}, kLease, 1};
  NumberLead lead_{state_, kStartTimeout};
};

TEST_F(NumberLeadTest, EachProcessGetsANumberOfItsOwn) {
  EXPECT_EQ(*Claim({}, 0), 0u);
  EXPECT_EQ(*Claim({}, 0), 1u);
  Join(1, 1);
  EXPECT_EQ(*Claim({}, 2), 2u);
  const absl::Status none = Claim({}, 3).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(none.message().find("all numbers are in use"), absl::string_view::npos) << none;
}

TEST_F(NumberLeadTest, AReservationEndsAfterTheStartTimeout) {
  EXPECT_EQ(*Claim({}, 0), 0u);
  EXPECT_EQ(*Claim({}, 59), 1u);
  EXPECT_EQ(*Claim({}, 60), 0u);
}

TEST_F(NumberLeadTest, ANumberIsFreeWhenItsProcessIsLostOrHasLeft) {
  for (const uint32_t number : {0u, 1u, 2u}) Join(number, 0);
  EXPECT_FALSE(Claim({}, 9).ok());
  ASSERT_TRUE(
      state_.membership.Leave(WorkerId{2}, state_.membership.of(WorkerId{2}).incarnation).ok());
  EXPECT_EQ(*Claim({}, 9), 2u);
  state_.membership.Expire(At(11));
  EXPECT_EQ(*Claim({}, 11), 0u);
}

TEST_F(NumberLeadTest, AProcessThatHasKeptTheStateOfAFreeNumberGetsIt) {
  Join(1, 0);
  EXPECT_EQ(*Claim({7, 1, 2}, 1), 2u);  // 7 is no worker, 1 is live
}

TEST_F(NumberLeadTest, ANumberThatNoProcessHasHadComesFirst) {
  Join(0, 0);
  state_.membership.Expire(At(11));
  EXPECT_EQ(*Claim({}, 11), 1u);
}

TEST_F(NumberLeadTest, OnlyNumbersBelowTheNumberOfWorkersAreGiven) {
  state_.rule.set_target(1);
  EXPECT_EQ(*Claim({2}, 0), 0u);
  EXPECT_FALSE(Claim({2}, 0).ok());
}

}  // namespace
}  // namespace thinwire
