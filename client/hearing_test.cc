#include "client/hearing.h"

#include <gtest/gtest.h>

namespace thinwire::client {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(10);

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

absl::Status Refused() { return absl::UnavailableError("connection refused"); }

TEST(HearingTest, SilenceIsJudgedOnlyPastTheLimit) {
  Hearing hearing(kLimit, 2, At(0));
  hearing.Heard(ServerId{0}, At(5));
  EXPECT_FALSE(hearing.Judge(At(10)).has_value());
  const auto loss = hearing.Judge(At(10.5));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->server, ServerId{1});
  EXPECT_EQ(loss->since, absl::Seconds(10.5));
  EXPECT_FALSE(loss->refusing);
}

TEST(HearingTest, TheServerThatWasSilentForLongestIsNamed) {
  Hearing hearing(kLimit, 3, At(0));
  hearing.Heard(ServerId{0}, At(3));
  hearing.Heard(ServerId{2}, At(1));
  EXPECT_EQ(hearing.Judge(At(30))->server, ServerId{1});
}

TEST(HearingTest, AHeardServerIsWaitedForForever) {
  Hearing hearing(kLimit, 1, At(0));
  for (int i = 1; i < 1000; ++i) {
    hearing.Heard(ServerId{0}, At(9 * i));
    ASSERT_FALSE(hearing.Judge(At(9 * i + 9)).has_value());
  }
}

TEST(HearingTest, AStreamThatIsNeverTakenCountsThoughHeartbeatsPass) {
  Hearing hearing(kLimit, 1, At(0));
  hearing.StreamLost(ServerId{0}, At(1), Refused());
  hearing.StreamLost(ServerId{0}, At(6), Refused());
  hearing.Heard(ServerId{0}, At(11));
  EXPECT_FALSE(hearing.Judge(At(11)).has_value());
  const auto loss = hearing.Judge(At(11.5));
  ASSERT_TRUE(loss.has_value());
  EXPECT_TRUE(loss->refusing);
  EXPECT_EQ(loss->last_error, Refused());
}

TEST(HearingTest, AStreamThatIsTakenAndLostAtOnceIsNotHeld) {
  Hearing hearing(kLimit, 1, At(0));
  for (int i = 1; i <= 11; ++i) {
    hearing.StreamHeld(ServerId{0}, At(i));
    hearing.StreamLost(ServerId{0}, At(i), Refused());
    hearing.Heard(ServerId{0}, At(i));
  }
  EXPECT_TRUE(hearing.Judge(At(11.5)).has_value());
}

TEST(HearingTest, AFrameEndsTheLoss) {
  Hearing hearing(kLimit, 1, At(0));
  hearing.StreamLost(ServerId{0}, At(1), Refused());
  hearing.StreamSpoke(ServerId{0}, At(2));
  hearing.StreamLost(ServerId{0}, At(20), Refused());
  hearing.Heard(ServerId{0}, At(25));
  EXPECT_FALSE(hearing.Judge(At(29)).has_value());
  hearing.Heard(ServerId{0}, At(30));
  EXPECT_TRUE(hearing.Judge(At(31)).has_value());
}

TEST(HearingTest, OwnSleepIsNotTheServersSilence) {
  Hearing hearing(kLimit, 1, At(0));
  hearing.Forgive(At(100));
  EXPECT_FALSE(hearing.Judge(At(101)).has_value());
  EXPECT_TRUE(hearing.Judge(At(111)).has_value());
}

}  // namespace
}  // namespace thinwire::client
