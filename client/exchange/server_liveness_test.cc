#include "client/exchange/server_liveness.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire::client {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(10);

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

absl::Status Refused() { return absl::UnavailableError("connection refused"); }

TEST(ServerLivenessTest, SilenceIsAnOutageOnlyBeyondTheLimit) {
  ServerLiveness liveness(kLimit, At(0));
  EXPECT_FALSE(liveness.OutageAt(At(10), kLimit).has_value());
  const auto outage = liveness.OutageAt(At(10.5), kLimit);
  ASSERT_TRUE(outage.has_value());
  EXPECT_EQ(outage->duration, absl::Seconds(10.5));
  EXPECT_EQ(outage->state, ServerState::kSilent);
  liveness.CallAnswered(At(11));
  EXPECT_FALSE(liveness.OutageAt(At(20), kLimit).has_value());
}

TEST(ServerLivenessTest, TheLongestOutageIsFound) {
  std::vector<ServerLiveness> servers(3, ServerLiveness(kLimit, At(0)));
  servers[0].CallAnswered(At(3));
  servers[2].CallAnswered(At(1));
  std::vector<std::optional<ServerOutage>> outages;
  for (const ServerLiveness& server : servers) outages.push_back(server.OutageAt(At(30), kLimit));
  EXPECT_EQ(LongestOutage(outages), 1u);
  outages[1].reset();
  EXPECT_EQ(LongestOutage(outages), 2u);
  EXPECT_FALSE(LongestOutage({}).has_value());
}

TEST(ServerLivenessTest, AServerThatAnswersHeartbeatsNeverTimesOut) {
  ServerLiveness liveness(kLimit, At(0));
  for (int i = 1; i < 1000; ++i) {
    liveness.CallAnswered(At(9 * i));
    ASSERT_FALSE(liveness.OutageAt(At(9 * i + 9), kLimit).has_value());
  }
}

TEST(ServerLivenessTest, RefusedStreamsAreAnOutageAlthoughHeartbeatsAreAnswered) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.StreamLost(At(6), Refused());
  liveness.CallAnswered(At(11));
  EXPECT_FALSE(liveness.OutageAt(At(11), kLimit).has_value());
  const auto outage = liveness.OutageAt(At(11.5), kLimit);
  ASSERT_TRUE(outage.has_value());
  EXPECT_EQ(outage->state, ServerState::kRefusing);
  EXPECT_EQ(outage->last_error, Refused());
}

TEST(ServerLivenessTest, AStreamThatIsAcceptedAndLostAtOnceDoesNotEndTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  for (int i = 1; i <= 11; ++i) {
    liveness.MessageAccepted(At(i));
    liveness.StreamLost(At(i), Refused());
    liveness.CallAnswered(At(i));
  }
  EXPECT_TRUE(liveness.OutageAt(At(11.5), kLimit).has_value());
}

// A worker that computes sends one message over a new stream and receives none.
TEST(ServerLivenessTest, AnAcceptedMessageOnANewStreamEndsTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.MessageAccepted(At(1));
  liveness.CallAnswered(At(60));
  EXPECT_FALSE(liveness.OutageAt(At(60), kLimit).has_value());
  liveness.StreamLost(At(60), Refused());
  liveness.CallAnswered(At(71));
  EXPECT_FALSE(liveness.OutageAt(At(70), kLimit).has_value()) << "the later loss counts";
  EXPECT_TRUE(liveness.OutageAt(At(71), kLimit).has_value());
}

TEST(ServerLivenessTest, AReceivedMessageEndsTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.MessageReceived(At(2));
  liveness.StreamLost(At(20), Refused());
  liveness.CallAnswered(At(25));
  EXPECT_FALSE(liveness.OutageAt(At(29), kLimit).has_value());
  liveness.CallAnswered(At(30));
  EXPECT_TRUE(liveness.OutageAt(At(31), kLimit).has_value());
}

// A worker that computes for a long time receives no message between two losses of its stream.
TEST(ServerLivenessTest, AStreamThatWasStableBeginsANewOutageAlsoUnderALongerLimit) {
  constexpr absl::Duration kLonger = absl::Seconds(600);
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.MessageAccepted(At(2));
  liveness.StreamLost(At(500), Refused());
  liveness.CallAnswered(At(1000));
  EXPECT_FALSE(liveness.OutageAt(At(1000), kLonger).has_value());
  EXPECT_TRUE(liveness.OutageAt(At(1101), kLonger).has_value());
}

TEST(ServerLivenessTest, TheErrorOfACallStaysUntilTheStreamIsUpAndACallIsAnswered) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), absl::UnavailableError("connection reset"));
  liveness.CallFailed(Refused());
  liveness.CallAnswered(At(2));
  EXPECT_EQ(liveness.OutageAt(At(20), kLimit)->last_error, Refused());
  liveness.MessageAccepted(At(3));
  liveness.CallAnswered(At(4));
  EXPECT_EQ(liveness.OutageAt(At(20), kLimit)->last_error, absl::OkStatus());
  EXPECT_EQ(liveness.last_sign(), At(4));
}

TEST(ServerLivenessTest, TheProcesssOwnSuspensionIsNoSilenceOfTheServer) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.Restart(At(100));
  EXPECT_FALSE(liveness.OutageAt(At(101), kLimit).has_value());
  EXPECT_TRUE(liveness.OutageAt(At(111), kLimit).has_value());
}

}  // namespace
}  // namespace thinwire::client
