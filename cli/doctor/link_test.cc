#include "cli/doctor/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/rpc/fake_control_server.h"
#include "common/base/ids.h"
#include "proto/probe.grpc.pb.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class LinkTest : public testing::Test {
 protected:
  absl::StatusOr<LinkSpeed> Measure(const std::string& address) {
    return MeasureLink(ChannelTo(address), clock_);
  }
  static std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
    return Credentials().Connect(address, ServerId{0}, grpc::ChannelArguments());
  }

  SteadyClock clock_;
};

TEST_F(LinkTest, ADoctorOnTheOtherSideMeasuresBothDirections) {
  const auto listener = LinkListener::Start("127.0.0.1:0", Credentials());
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto speed = Measure((*listener)->address());
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_GT(speed->round_trip, absl::ZeroDuration());
  EXPECT_GT(speed->up.value_or(0), 0);
  EXPECT_GT(speed->down.value_or(0), 0);
}

TEST_F(LinkTest, AServerMeasuresTheDownloadOfItsParameters) {
  const FakeControlServer server("a", std::string(1 << 16, 'a'));
  const auto speed = Measure(server.address());
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_EQ(speed->up, std::nullopt);
  EXPECT_GT(speed->down.value_or(0), 0);
}

TEST_F(LinkTest, AServerWithoutParametersMeasuresTheRoundTrip) {
  const FakeControlServer server("a", "");
  const auto speed = Measure(server.address());
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_EQ(speed->down, std::nullopt);
}

TEST_F(LinkTest, AnUnreachableMachineIsAnError) {
  EXPECT_EQ(Measure("127.0.0.1:1").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LinkTest, ARequestForTooMuchIsRefused) {
  const auto listener = LinkListener::Start("127.0.0.1:0", Credentials());
  ASSERT_TRUE(listener.ok()) << listener.status();
  Probe::Stub stub(ChannelTo((*listener)->address()));
  grpc::ClientContext context;
  const auto stream = stub.Exchange(&context);
  ProbeRequest request;
  request.set_reply_count(65);
  stream->Write(request);
  stream->WritesDone();
  ProbeReply reply;
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("probe: too many replies"));
}

}  // namespace
}  // namespace thinwire
