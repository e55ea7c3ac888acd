#include "client/transport/join_leave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/testing/in_process_transport.h"
#include "client/transport/joining.h"
#include "client/transport/leaving.h"
#include "common/time/virtual_time.h"

namespace thinwire::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The scripted replies to control calls, and the calls received, of all servers of a test.
struct Script {
  // For each server, the errors that it returns for its first calls, in order. Later calls succeed.
  std::map<uint32_t, std::deque<absl::Status>> errors;
  // For each server, the generations in its replies, in order. The last one stays.
  std::map<uint32_t, std::deque<uint64_t>> generations;
  bool by_round = true;
  std::vector<std::string> calls;
  std::vector<uint64_t> runs;  // the run that each call of Join stated
};

// A server that answers Join and Leave calls with the replies of a Script, and records the calls.
class ScriptedServer final : public InProcessServer {
 public:
  ScriptedServer(Script& script, uint32_t number) : script_(script), number_(number) {}

  void Opened(uint64_t, Peer) override {}
  void Frame(uint64_t, const ByteChain&) override {}
  void Closed(uint64_t) override {}
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override {
    script_.calls.push_back(absl::StrCat("join ", number_, " as ", request.incarnation()));
    script_.runs.push_back(request.run());
    if (absl::Status error = NextError(); !error.ok()) return error;
    JoinReply reply;
    reply.set_incarnation(request.incarnation() == 0 ? 5 : request.incarnation());
    reply.set_run(9);
    reply.set_by_round(script_.by_round);
    std::deque<uint64_t>& generations = script_.generations[number_];
    if (generations.empty()) generations.push_back(1);
    reply.set_generation(generations.front());
    if (generations.size() > 1) generations.pop_front();
    return reply;
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest&) override {
    script_.calls.push_back(absl::StrCat("leave ", number_));
    if (absl::Status error = NextError(); !error.ok()) return error;
    return LeaveReply();
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override {
    return HeartbeatReply();
  }

 private:
  absl::Status NextError() {
    std::deque<absl::Status>& left = script_.errors[number_];
    if (left.empty()) return absl::OkStatus();
    absl::Status error = left.front();
    left.pop_front();
    return error;
  }

  Script& script_;
  const uint32_t number_;
};

// Runs in virtual time.
class JoinLeaveTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<JoinReply>> Join(uint32_t server_count, uint64_t incarnation = 0,
                                              Generation least = Generation()) {
    JoinRequest request;
    request.set_servers(server_count);
    request.set_incarnation(incarnation);
    std::optional<absl::StatusOr<std::vector<JoinReply>>> result;
    joining_ = std::make_unique<Joining>(transport_, loop_, wait_, request, least,
                                         [&](auto replies) { result = std::move(replies); });
    joining_->Start();
    while (!result.has_value()) time_.RunNext();
    return *std::move(result);
  }
  // Stops the worker in a later task, as a signal does.
  void Stop() {
    loop_->Post([this] { joining_->Cancel(); });
  }
  absl::Status Leave(std::vector<ServerId> servers, bool hurried = false) {
    std::optional<absl::Status> result;
    Leaving leaving(transport_, loop_, patience_, std::move(servers), LeaveRequest(),
                    [&](absl::Status left) { result = std::move(left); });
    if (hurried) leaving.Hurry();
    leaving.Start();
    while (!result.has_value()) time_.RunNext();
    return *result;
  }

  Script script_;
  ScriptedServer servers_[3] = {{script_, 0}, {script_, 1}, {script_, 2}};
  VirtualTime time_;
  InProcessTransport transport_{{&servers_[0], &servers_[1], &servers_[2]}, time_};
  const std::shared_ptr<Executor> loop_ = time_.Make();
  JoinWait wait_ = {.start_timeout = absl::Minutes(1), .call_timeout = absl::Minutes(1)};
  absl::Duration patience_ = absl::Minutes(1);
  std::unique_ptr<Joining> joining_;
};

TEST_F(JoinLeaveTest, TheLeadAssignsTheIncarnationForAllServers) {
  EXPECT_EQ(Join(3)->size(), 3u);
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "join 2 as 5"));
  EXPECT_THAT(script_.runs, ElementsAre(0, 9, 9));
}

TEST_F(JoinLeaveTest, RetryableErrorsAreRetried) {
  script_.errors[1] = {absl::UnavailableError("refused"), absl::ResourceExhaustedError("full")};
  EXPECT_TRUE(Join(2).ok());
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 0", "join 1 as 5", "join 1 as 5", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, TheOtherServersAreCalledAtTheSameTime) {
  script_.errors[1] = {absl::UnavailableError("refused")};
  EXPECT_EQ(Join(3)->size(), 3u);
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 0", "join 1 as 5", "join 2 as 5", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, ARefusalAlsoLeavesServersWhoseCallsArePending) {
  script_.errors[1] = {absl::FailedPreconditionError("another model")};
  EXPECT_EQ(Join(3).status(),
            absl::FailedPreconditionError("server 1 (in process): another model"));
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 0", "join 1 as 5", "join 2 as 5", "leave 0", "leave 2"));
}

TEST_F(JoinLeaveTest, OtherErrorsEndTheJoinAtOnce) {
  script_.errors[1] = {absl::FailedPreconditionError("another model")};
  EXPECT_EQ(Join(2).status(),
            absl::FailedPreconditionError("server 1 (in process): another model"));
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "leave 0"));
}

TEST_F(JoinLeaveTest, RetriesEndAfterTheStartTimeout) {
  wait_.start_timeout = absl::ZeroDuration();
  script_.errors[0] = {absl::UnavailableError("refused")};
  const absl::Status status = Join(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 0 (in process): refused; worker 0 tried to join"));
}

TEST_F(JoinLeaveTest, AServerThatHasNotFollowedTheLeadYetIsCalledAgain) {
  script_.generations = {{0, {4}}, {1, {3, 3, 4}}};
  const auto replies = Join(2);
  ASSERT_TRUE(replies.ok()) << replies.status();
  for (const JoinReply& reply : *replies) EXPECT_EQ(reply.generation(), 4u);
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 0", "join 1 as 5", "join 1 as 5", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, AServerThatNeverFollowsTheLeadEndsTheJoin) {
  wait_.start_timeout = absl::ZeroDuration();
  script_.generations = {{0, {4}}, {1, {3}}};
  const absl::Status status = Join(2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 1 (in process): has not continued from the earlier step yet "
                        "(expected generation 4, got 3); worker 0 tried to join"));
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "leave 0"));
}

TEST_F(JoinLeaveTest, ANewProcessLeavesBeforeItBeginsAgainAtALeadThatWasBehind) {
  script_.generations = {{0, {3, 4}}, {1, {4}}};
  const auto replies = Join(2);
  ASSERT_TRUE(replies.ok()) << replies.status();
  for (const JoinReply& reply : *replies) EXPECT_EQ(reply.generation(), 4u);
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "leave 0", "leave 1",
                                         "join 0 as 0", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, AReturningProcessDoesNotLeaveBeforeItBeginsAgain) {
  script_.generations = {{0, {3, 4}}, {1, {4}}};
  EXPECT_TRUE(Join(2, /*incarnation=*/7).ok());
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 7", "join 1 as 7", "join 0 as 7", "join 1 as 7"));
}

TEST_F(JoinLeaveTest, AReturningProcessWaitsForTheGenerationThatItKnows) {
  script_.generations = {{0, {3, 4}}, {1, {4}}};
  EXPECT_TRUE(Join(2, /*incarnation=*/7, Generation{4}).ok());
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 7", "join 0 as 7", "join 1 as 7"));
}

TEST_F(JoinLeaveTest, WithoutRoundsTheGenerationsOfServersMayDiffer) {
  script_.by_round = false;
  script_.generations = {{0, {4}}, {1, {3}}, {2, {5}}};
  EXPECT_TRUE(Join(3).ok());
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "join 2 as 5"));
}

// The servers continue from a step before the lead assigned the incarnation.
TEST_F(JoinLeaveTest, AReturningProcessWithAForgottenIncarnationGetsANewOne) {
  script_.errors[1] = {absl::NotFoundError("server 0 has not assigned it")};
  const auto replies = Join(2, /*incarnation=*/7);
  ASSERT_TRUE(replies.ok()) << replies.status();
  EXPECT_EQ(replies->at(1).incarnation(), 5u);
  EXPECT_THAT(script_.calls,
              ElementsAre("join 0 as 7", "join 1 as 7", "leave 0", "join 0 as 0", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, AnIncarnationMayBeForgottenDuringTheJoin) {
  script_.generations = {{0, {4}}, {1, {3, 4}}};
  script_.errors[1] = {absl::OkStatus(), absl::NotFoundError("not assigned")};
  EXPECT_TRUE(Join(2).ok());
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 1 as 5", "join 1 as 5", "leave 0",
                                         "join 0 as 0", "join 1 as 5"));
}

TEST_F(JoinLeaveTest, AReturningProcessWhoseNumberIsTakenFails) {
  script_.errors[0] = {absl::FailedPreconditionError("a newer process has this number"),
                       absl::AlreadyExistsError("worker 0: is in use")};
  EXPECT_EQ(Join(2, /*incarnation=*/7).status(),
            absl::AlreadyExistsError("server 0 (in process): worker 0: is in use"));
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 7", "join 0 as 0"));
}

TEST_F(JoinLeaveTest, ANumberInUseIsAskedForAgainUntilItsTimeout) {
  wait_.in_use_timeout = absl::Minutes(1);
  script_.errors[0] = std::deque<absl::Status>(2, absl::AlreadyExistsError("worker 0: is in use"));
  EXPECT_TRUE(Join(1).ok());
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "join 0 as 0", "join 0 as 0"));

  wait_.in_use_timeout = absl::Nanoseconds(1);
  script_.errors[0] = {absl::AlreadyExistsError("worker 0: is in use")};
  const absl::Status status = Join(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is in use; worker 0 tried to join for"));
}

TEST_F(JoinLeaveTest, AWaitForAServerIsReportedWithItsCause) {
  wait_.first_notice = absl::ZeroDuration();
  wait_.notice_interval = absl::Milliseconds(1);
  std::vector<std::string> reports;
  wait_.report = [&](const std::string& text) { reports.push_back(text); };
  script_.errors[1] = {absl::UnavailableError("connection refused")};
  ASSERT_TRUE(Join(2).ok());
  EXPECT_THAT(reports, Contains("waiting for server 1 (in process): connection refused"));
  EXPECT_THAT(reports,
              Contains("waiting for server 0 (in process): no answer yet; it waits for the "
                       "end of the lease of an earlier process of worker 0 if there was "
                       "one"));
}

TEST_F(JoinLeaveTest, AReportNamesAllServersThatAreAwaited) {
  wait_.first_notice = absl::ZeroDuration();
  wait_.notice_interval = absl::Milliseconds(1);
  std::vector<std::string> reports;
  wait_.report = [&](const std::string& text) { reports.push_back(text); };
  script_.errors[1] = {absl::UnavailableError("refused")};
  script_.errors[2] = {absl::UnavailableError("full")};
  ASSERT_TRUE(Join(3).ok());
  EXPECT_THAT(reports, Contains("waiting for server 1 (in process): refused; "
                                "waiting for server 2 (in process): full"));
}

TEST_F(JoinLeaveTest, AQuickJoinReportsNoWait) {
  wait_.first_notice = absl::InfiniteDuration();
  wait_.report = [&](const std::string& text) { ADD_FAILURE() << text; };
  script_.errors[1] = {absl::UnavailableError("connection refused")};
  EXPECT_TRUE(Join(2).ok());
}

TEST_F(JoinLeaveTest, AStopEndsThePauseBetweenTwoCalls) {
  wait_.first_notice = absl::ZeroDuration();
  wait_.notice_interval = absl::Milliseconds(1);
  wait_.report = [&](const std::string& text) {
    if (text == "waiting for server 0 (in process): connection refused") Stop();
  };
  transport_.Refuse(ServerId{0}, true);
  EXPECT_EQ(Join(2).status(), absl::CancelledError("server 0 (in process): stopped while joining"));
}

TEST_F(JoinLeaveTest, AStopEndsAPendingCallAndLeavesTheServersThatAreJoined) {
  wait_.first_notice = absl::ZeroDuration();
  wait_.report = [&](const std::string& text) {
    if (text == "waiting for server 1 (in process): no answer yet") Stop();
  };
  transport_.Mute(ServerId{1}, true);
  EXPECT_EQ(Join(2).status(), absl::CancelledError("server 1 (in process): stopped while joining"));
  EXPECT_THAT(script_.calls, ElementsAre("join 0 as 0", "leave 0"));
}

TEST_F(JoinLeaveTest, EveryServerIsCalledOnceBeforeAnUnreachableOneIsRetried) {
  script_.errors[0] = {absl::UnavailableError("refused"), absl::UnavailableError("refused")};
  const absl::Status left = Leave({ServerId{0}, ServerId{1}, ServerId{2}});
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_THAT(script_.calls, ElementsAre("leave 0", "leave 1", "leave 2", "leave 0", "leave 0"));
}

TEST_F(JoinLeaveTest, AServerThatRefusesALeaveIsNotRetried) {
  script_.errors[0] = {absl::InvalidArgumentError("worker 0: out of range")};
  EXPECT_EQ(Leave({ServerId{0}, ServerId{1}}),
            absl::InvalidArgumentError("server 0 (in process): worker 0: out of range"));
  EXPECT_THAT(script_.calls, ElementsAre("leave 0", "leave 1"));
}

TEST_F(JoinLeaveTest, AStoppedWorkerCallsEveryServerOnce) {
  script_.errors[0] = {absl::UnavailableError("refused")};
  EXPECT_EQ(Leave({ServerId{0}, ServerId{1}}, /*hurried=*/true),
            absl::UnavailableError("server 0 (in process): refused"));
  EXPECT_THAT(script_.calls, ElementsAre("leave 0", "leave 1"));
}

TEST(MakeJoinRequestTest, AServerComputesTheSamePartitionFromTheRequest) {
  const ClientOptions options = {
      .job = "train", .worker = WorkerId{3}, .server_count = 2, .planned_examples = 77};
  const std::vector<TensorShape> tensors = {{"w", {784, 100}}, {"b", {100}}, {"s", {}}};
  const Partition partition = *Partition::Make(tensors, options.shard_size, options.server_count);
  const JoinRequest request = MakeJoinRequest(options, partition);
  EXPECT_EQ(request.job(), "train");
  EXPECT_EQ(request.worker(), 3u);
  EXPECT_EQ(request.planned_examples(), 77u);
  std::vector<TensorShape> received;
  for (const Tensor& tensor : request.tensors()) {
    received.push_back({tensor.name(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  EXPECT_EQ(received, tensors);
  const Partition again =
      *Partition::Make(std::move(received), request.shard_size(), request.servers());
  EXPECT_EQ(again.hash(), request.partition_hash());
}

struct State {
  bool open = false;
  uint64_t frontier = 0;
  uint64_t predecessor_next = 0;
  uint64_t largest_next = 0;
};

JoinReply Reply(bool by_round, const std::vector<State>& shards) {
  JoinReply reply;
  reply.set_by_round(by_round);
  for (const State& s : shards) {
    ShardState* shard = reply.add_shards();
    shard->set_open(s.open);
    shard->set_frontier(s.frontier);
    shard->set_predecessor_next(s.predecessor_next);
    shard->set_largest_next(s.largest_next);
  }
  return reply;
}

TEST(StartingStepTest, ANewJobBeginsAtZero) {
  const std::vector<JoinReply> replies = {Reply(true, {{}, {}}), Reply(true, {})};
  EXPECT_EQ(StartingStep(replies), Step{0});
}

TEST(StartingStepTest, ARestoredShutJobBeginsAtItsFrontier) {
  const std::vector<JoinReply> replies = {Reply(true, {{.frontier = 7}, {.frontier = 7}})};
  EXPECT_EQ(StartingStep(replies), Step{7});
}

TEST(StartingStepTest, AnOpenRoundFinishesWithoutTheNewWorker) {
  const std::vector<JoinReply> replies = {Reply(true, {{.open = true, .frontier = 4}}),
                                          Reply(true, {{.open = false, .frontier = 6}})};
  EXPECT_EQ(StartingStep(replies), Step{7});
}

TEST(StartingStepTest, ARoundThatIsNotDealtBeginsWithTheNewWorker) {
  std::vector<JoinReply> replies = {
      Reply(true, {{.open = true, .frontier = 16, .largest_next = 16}}),
      Reply(true, {{.open = true, .frontier = 15, .largest_next = 16}})};
  replies[0].set_dealt_until(16);
  EXPECT_EQ(StartingStep(replies), Step{16});
  replies[0].set_dealt_until(24);
  EXPECT_EQ(StartingStep(replies), Step{17});
  EXPECT_EQ(StartingStep(std::vector<JoinReply>{Reply(true, {{.open = true}})}), Step{1});
}

TEST(StartingStepTest, WithoutRoundsTheWorkerBeginsAtTheFrontier) {
  const std::vector<JoinReply> replies = {Reply(false, {{.open = true, .frontier = 4}})};
  EXPECT_EQ(StartingStep(replies), Step{4});
}

TEST(StartingStepTest, StepsThatThePredecessorFinishedAreNotRepeated) {
  const std::vector<JoinReply> replies = {
      Reply(true, {{.open = true, .frontier = 4, .predecessor_next = 9}})};
  EXPECT_EQ(StartingStep(replies), Step{9});
}

// The open round waits for the worker.
TEST(ReturningStepTest, AWorkerReturnsToTheOpenRound) {
  const std::vector<JoinReply> replies = {
      Reply(true, {{.open = true, .frontier = 4, .predecessor_next = 4, .largest_next = 5}}),
      Reply(true, {{.open = true, .frontier = 4, .predecessor_next = 3}})};
  EXPECT_EQ(ReturningStep(replies), Step{4});
}

TEST(ReturningStepTest, StepsThatTheWorkerFinishedAreNotRepeated) {
  const std::vector<JoinReply> replies = {
      Reply(true, {{.open = true, .frontier = 4, .predecessor_next = 5}})};
  EXPECT_EQ(ReturningStep(replies), Step{5});
}

TEST(StartingStepTest, ANewWorkerStartsBehindNoOtherWorker) {
  const std::vector<JoinReply> replies = {
      Reply(false, {{.open = true, .frontier = 4, .largest_next = 6}})};
  EXPECT_EQ(StartingStep(replies), Step{6});
}

}  // namespace
}  // namespace thinwire::client
