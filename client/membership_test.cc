#include "client/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Says what it was told to say, and writes down who was asked.
class ScriptedTransport final : public Transport {
 public:
  std::map<uint32_t, std::deque<absl::Status>> errors;  // then OK
  std::map<uint32_t, uint64_t> generation;
  std::vector<std::string> calls;

  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value);
  }
  std::unique_ptr<Stream> Open(ServerId, StreamObserver&) override { return nullptr; }
  absl::StatusOr<JoinReply> Join(ServerId server, const JoinRequest& request,
                                 absl::Duration) override {
    calls.push_back(absl::StrCat("join ", server.value, " as ", request.incarnation()));
    if (absl::Status s = Next(server); !s.ok()) return s;
    JoinReply reply;
    reply.set_incarnation(5);
    reply.set_generation(generation[server.value]);
    return reply;
  }
  absl::StatusOr<LeaveReply> Leave(ServerId server, const LeaveRequest&, absl::Duration) override {
    calls.push_back(absl::StrCat("leave ", server.value));
    if (absl::Status s = Next(server); !s.ok()) return s;
    return LeaveReply();
  }
  void Heartbeat(ServerId, const HeartbeatRequest&, absl::Duration, HeartbeatDone) override {}

 private:
  absl::Status Next(ServerId server) {
    std::deque<absl::Status>& left = errors[server.value];
    if (left.empty()) return absl::OkStatus();
    absl::Status status = left.front();
    left.pop_front();
    return status;
  }
};

class MembershipTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<JoinReply>> Join(uint32_t servers) {
    JoinRequest request;
    request.set_servers(servers);
    return Membership(transport_, clock_, silence_).JoinAll(request);
  }

  ScriptedTransport transport_;
  SteadyClock clock_;
  absl::Duration silence_ = absl::Minutes(1);
};

TEST_F(MembershipTest, TheLeadGivesTheIncarnationThatTheOthersAreTold) {
  EXPECT_EQ(Join(3)->size(), 3u);
  EXPECT_THAT(transport_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "join 2 as 5"));
}

TEST_F(MembershipTest, WhatMayPassIsTriedAgain) {
  transport_.errors[1] = {absl::UnavailableError("refused"), absl::ResourceExhaustedError("full")};
  EXPECT_TRUE(Join(2).ok());
  EXPECT_THAT(transport_.calls,
              ElementsAre("join 0 as 0", "join 1 as 5", "join 1 as 5", "join 1 as 5"));
}

TEST_F(MembershipTest, WhatWillNotPassIsSaidAtOnce) {
  transport_.errors[1] = {absl::FailedPreconditionError("want another model")};
  EXPECT_EQ(Join(2).status(), absl::FailedPreconditionError("server 1: want another model"));
  EXPECT_THAT(transport_.calls, ElementsAre("join 0 as 0", "join 1 as 5"));
}

TEST_F(MembershipTest, PatienceEnds) {
  silence_ = absl::ZeroDuration();
  transport_.errors[0] = {absl::UnavailableError("refused")};
  const absl::Status status = Join(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 0: refused; worker 0 tried to join"));
}

TEST_F(MembershipTest, ServersOfTwoGenerationsAreNotOneJob) {
  transport_.generation = {{0, 4}, {1, 3}};
  EXPECT_EQ(Join(2).status(), absl::AbortedError("server 1: want the lead's generation 4, got 3"));
}

TEST_F(MembershipTest, EveryServerIsToldBeforeTheOneThatIsGoneIsTriedAgain) {
  transport_.errors[0] = {absl::UnavailableError("refused"), absl::UnavailableError("refused")};
  const absl::Status left =
      Membership(transport_, clock_, silence_).LeaveAll(3, LeaveRequest(), std::nullopt);
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_THAT(transport_.calls, ElementsAre("leave 0", "leave 1", "leave 2", "leave 0", "leave 0"));
}

TEST_F(MembershipTest, ALostServerIsNotTold) {
  EXPECT_TRUE(
      Membership(transport_, clock_, silence_).LeaveAll(3, LeaveRequest(), ServerId{1}).ok());
  EXPECT_THAT(transport_.calls, ElementsAre("leave 0", "leave 2"));
}

}  // namespace
}  // namespace thinwire::client
