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
  EXPECT_FALSE(liveness.OutageAt(At(10)).has_value());
  const auto outage = liveness.OutageAt(At(10.5));
  ASSERT_TRUE(outage.has_value());
  EXPECT_EQ(outage->duration, absl::Seconds(10.5));
  EXPECT_EQ(outage->state, ServerState::kSilent);
  liveness.HeartbeatAnswered(At(11));
  EXPECT_FALSE(liveness.OutageAt(At(20)).has_value());
}

TEST(ServerLivenessTest, TheLongestOutageIsFound) {
  std::vector<ServerLiveness> servers(3, ServerLiveness(kLimit, At(0)));
  servers[0].HeartbeatAnswered(At(3));
  servers[2].HeartbeatAnswered(At(1));
  std::vector<std::optional<ServerOutage>> outages;
  for (const ServerLiveness& server : servers) outages.push_back(server.OutageAt(At(30)));
  EXPECT_EQ(LongestOutage(outages), 1u);
  outages[1].reset();
  EXPECT_EQ(LongestOutage(outages), 2u);
  EXPECT_FALSE(LongestOutage({}).has_value());
}

TEST(ServerLivenessTest, AServerThatAnswersHeartbeatsNeverTimesOut) {
  ServerLiveness liveness(kLimit, At(0));
  for (int i = 1; i < 1000; ++i) {
    liveness.HeartbeatAnswered(At(9 * i));
    ASSERT_FALSE(liveness.OutageAt(At(9 * i + 9)).has_value());
  }
}

TEST(ServerLivenessTest, RefusedStreamsAreAnOutageAlthoughHeartbeatsAreAnswered) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.StreamLost(At(6), Refused());
  liveness.HeartbeatAnswered(At(11));
  EXPECT_FALSE(liveness.OutageAt(At(11)).has_value());
  const auto outage = liveness.OutageAt(At(11.5));
  ASSERT_TRUE(outage.has_value());
  EXPECT_EQ(outage->state, ServerState::kRefusing);
  EXPECT_EQ(outage->last_error, Refused());
}

TEST(ServerLivenessTest, AStreamThatIsAcceptedAndLostAtOnceDoesNotEndTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  for (int i = 1; i <= 11; ++i) {
    liveness.MessageAccepted(At(i));
    liveness.StreamLost(At(i), Refused());
    liveness.HeartbeatAnswered(At(i));
  }
  EXPECT_TRUE(liveness.OutageAt(At(11.5)).has_value());
}

// A worker that computes sends one message over a new stream and receives none.
TEST(ServerLivenessTest, AnAcceptedMessageOnANewStreamEndsTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.MessageAccepted(At(1));
  liveness.HeartbeatAnswered(At(60));
  EXPECT_FALSE(liveness.OutageAt(At(60)).has_value());
  liveness.StreamLost(At(60), Refused());
  liveness.HeartbeatAnswered(At(71));
  EXPECT_FALSE(liveness.OutageAt(At(70)).has_value()) << "the later loss counts";
  EXPECT_TRUE(liveness.OutageAt(At(71)).has_value());
}

TEST(ServerLivenessTest, AReceivedMessageEndsTheOutage) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.StreamLost(At(1), Refused());
  liveness.MessageReceived(At(2));
  liveness.StreamLost(At(20), Refused());
  liveness.HeartbeatAnswered(At(25));
  EXPECT_FALSE(liveness.OutageAt(At(29)).has_value());
  liveness.HeartbeatAnswered(At(30));
  EXPECT_TRUE(liveness.OutageAt(At(31)).has_value());
}

TEST(ServerLivenessTest, TheProcesssOwnSuspensionIsNoSilenceOfTheServer) {
  ServerLiveness liveness(kLimit, At(0));
  liveness.Restart(At(100));
  EXPECT_FALSE(liveness.OutageAt(At(101)).has_value());
  EXPECT_TRUE(liveness.OutageAt(At(111)).has_value());
}

}  // namespace
}  // namespace thinwire::client
