// Tests the identity of a run: restarted servers, unreachable servers, and processes that state a
// run or an incarnation that the lead did not give them.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/model/partition.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/testing/direct_peers.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/membership/admission_lead.h"

namespace thinwire {
namespace {

constexpr uint32_t kServers = 3;
constexpr uint64_t kLargest = ~uint64_t{0};

class RunTest : public testing::Test {
 protected:
  RunTest() : jobs_(kServers) {
    for (uint32_t s = 0; s < kServers; ++s) Restart(s);
  }
  // The lead's calls end before the other jobs are destroyed.
  ~RunTest() override { jobs_[0].reset(); }

  // Starts a server without state in place of the former one.
  void Restart(uint32_t server) {
    JobOptions options;
    options.rule = Rule::Async(4);
    options.server = ServerId{server};
    options.server_count = kServers;
    options.epoch = Epoch{++starts_};
    options.run = RunId{1000 + starts_};
    options.token_key = absl::StrCat("key ", starts_);
    std::unique_ptr<Peers> peers;
    if (server == 0) {
      peers = std::make_unique<DirectPeers>([this](ServerId id) -> Job* {
        absl::MutexLock lock(&mu_);
        return unreachable_.contains(id.value) ? nullptr : jobs_[id.value].get();
      });
    }
    options.group_updates = {
        {MakeOptimizer({}).value(), Schedule::Make({.learning_rate = 0.5}).value()}};
    auto job = std::make_unique<Job>(options, clock_, threads_.executors(), std::move(peers));
    absl::MutexLock lock(&mu_);
    jobs_[server].swap(job);
  }
  void SetReachable(uint32_t server, bool reachable) {
    absl::MutexLock lock(&mu_);
    if (reachable) {
      unreachable_.erase(server);
    } else {
      unreachable_.insert(server);
    }
  }

  JoinRequest RequestOf(uint32_t worker, uint64_t incarnation = 0, uint64_t run = 0) const {
    return JoinRequestOf(partition_, worker, incarnation, run);
  }
  void StartJoin(uint32_t server, const JoinRequest& request, Pending<JoinReply>& pending) {
    jobs_[server]->Join(
        request, [] { return false; }, pending.done());
  }
  absl::StatusOr<JoinReply> Join(uint32_t server, const JoinRequest& request) {
    Pending<JoinReply> pending;
    StartJoin(server, request, pending);
    return pending.Get();
  }
  // Joins all servers, as a client does. Returns the lead's reply.
  absl::StatusOr<JoinReply> JoinAll(uint32_t worker) {
    const absl::StatusOr<JoinReply> lead = Join(0, RequestOf(worker));
    if (!lead.ok()) return lead;
    for (uint32_t s = 1; s < kServers; ++s) {
      const auto reply = Join(s, RequestOf(worker, lead->incarnation(), lead->run()));
      if (!reply.ok()) return reply.status();
      EXPECT_EQ(reply->run(), lead->run());
    }
    return lead;
  }
  // Expects that STATUS refuses a Join with a message that contains TEXT.
  static void ExpectRefused(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(std::string(status.message()), text)) << status;
  }
  HeartbeatReply Heartbeat(uint32_t server, uint32_t worker, uint64_t incarnation) {
    HeartbeatRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_epoch(EpochOf(server));
    Pending<HeartbeatReply> pending;
    jobs_[server]->Call(request, pending.done());
    return pending.Get().value();
  }
  absl::Status Leave(uint32_t server, uint32_t worker, uint64_t incarnation, uint64_t run) {
    LeaveRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_run(run);
    Pending<LeaveReply> pending;
    jobs_[server]->Call(request, pending.done());
    return pending.Get().status();
  }
  StatusReply Status(uint32_t server) {
    Pending<StatusReply> pending;
    jobs_[server]->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  uint64_t EpochOf(uint32_t server) { return Status(server).epoch(); }
  void AdvanceAndTickLead(absl::Duration by) {
    clock_.Advance(by);
    absl::Notification done;
    jobs_[0]->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
  }

  const Partition partition_ =
      Partition::Make({{"w", {64, 64}}, {"v", {64, 64}}, {"b", {3}}}, 4096, kServers).value();
  ManualClock clock_;
  JobThreads threads_{1};
  uint64_t starts_ = 0;
  absl::Mutex mu_;
  std::set<uint32_t> unreachable_;  // guarded by mu_
  std::vector<std::unique_ptr<Job>> jobs_;
};

TEST_F(RunTest, TheFirstJoinBeginsARunAtEveryServer) {
  EXPECT_EQ(Status(1).run(), 0u);
  const JoinReply first = JoinAll(0).value();
  EXPECT_NE(first.run(), 0u);
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(Status(s).run(), first.run());
  EXPECT_EQ(JoinAll(1)->run(), first.run());
}

TEST_F(RunTest, AServerThatLostItsStateIsNotJoinedAgain) {
  const JoinReply old = JoinAll(0).value();
  Restart(1);
  for (int i = 0; i < 2; ++i) {
    ExpectRefused(JoinAll(1).status(), "server 1 (in process): server 1 lost its state: ");
    ExpectRefused(Join(1, RequestOf(0, 1, old.run())).status(),
                  "server 1 lost its state: worker 0 belongs to another run (expected run none");
  }
  EXPECT_FALSE(Status(1).sealed());
  // The other servers still know the run.
  EXPECT_TRUE(Join(0, RequestOf(0, 1, old.run())).ok());
  EXPECT_TRUE(Join(2, RequestOf(0, 1, old.run())).ok());
}

TEST_F(RunTest, ALeadThatLostItsStateAdmitsNobody) {
  const JoinReply old = JoinAll(0).value();
  Restart(0);
  for (int i = 0; i < 2; ++i) {
    ExpectRefused(JoinAll(0).status(), "server 0 lost its state: server ");
    ExpectRefused(Join(0, RequestOf(0, 1, old.run())).status(), "server 0 lost its state: ");
  }
  // Server 1 was not admitted to the lead's new run.
  EXPECT_EQ(Status(1).run(), old.run());
}

// The lead asks server 1, which has no state, before server 2 refuses.
TEST_F(RunTest, ALeadAndAServerThatLostTheirStateAdmitNobody) {
  ASSERT_TRUE(JoinAll(0).ok());
  Restart(0);
  Restart(1);
  ExpectRefused(JoinAll(0).status(), "server 0 lost its state: server 2 belongs to another run");
  ExpectRefused(JoinAll(1).status(), "server 0 lost its state: server 2 belongs to another run");
}

TEST_F(RunTest, ANewRunBeginsWhenAllServersWereRestarted) {
  const JoinReply old = JoinAll(0).value();
  for (uint32_t s = 0; s < kServers; ++s) Restart(s);
  for (uint32_t s = 0; s < kServers; ++s) {
    ExpectRefused(Join(s, RequestOf(0, 1, old.run())).status(), "lost its state");
  }
  const JoinReply next = JoinAll(1).value();
  EXPECT_NE(next.run(), old.run());
  EXPECT_EQ(next.incarnation(), 1u);
  for (uint32_t s = 0; s < kServers; ++s) {
    ExpectRefused(Join(s, RequestOf(0, 1, old.run())).status(), "lost its state");
  }
}

TEST_F(RunTest, ServersMayBeRestartedOneAfterAnother) {
  ASSERT_TRUE(JoinAll(0).ok());
  Restart(1);
  ExpectRefused(JoinAll(1).status(), "server 1 lost its state");
  Restart(0);
  ExpectRefused(JoinAll(0).status(), "server 0 lost its state");
  Restart(2);
  EXPECT_TRUE(JoinAll(0).ok());
}

TEST_F(RunTest, ARestartOfTheLeadBeforeAnotherServerWasJoinedLosesNothing) {
  const JoinReply old = Join(0, RequestOf(0)).value();
  EXPECT_EQ(Status(1).run(), old.run());
  Restart(0);
  EXPECT_TRUE(JoinAll(1).ok());
  ExpectRefused(Join(1, RequestOf(0, 1, old.run())).status(), "server 1 lost its state");
}

TEST_F(RunTest, AServerThatTheLeadHasNotAdmittedIsNotJoined) {
  ExpectRefused(Join(1, RequestOf(0, 1, 55)).status(),
                "server 1 lost its state: worker 0 belongs to another run (expected run none, got "
                "0000000000000037)");
  EXPECT_EQ(Join(1, RequestOf(0, 1)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RunTest, AJoinWaitsForAServerThatStartsLater) {
  SetReachable(2, false);
  Pending<JoinReply> pending;
  StartJoin(0, RequestOf(0), pending);
  AdvanceAndTickLead(absl::Seconds(1));
  EXPECT_FALSE(pending.ready());
  Status(0);  // replies after the lead has handled the answers to its calls
  SetReachable(2, true);
  AdvanceAndTickLead(absl::Seconds(1));
  EXPECT_TRUE(pending.Get().ok());
}

TEST_F(RunTest, AnUnreachableServerIsNamedAndTheNumberIsFree) {
  SetReachable(2, false);
  Pending<JoinReply> pending;
  StartJoin(0, RequestOf(0), pending);
  Status(0);  // replies after the lead has received the Join
  AdvanceAndTickLead(AdmissionLead::kPatience + absl::Seconds(1));
  EXPECT_EQ(pending.Get().status(),
            absl::UnavailableError("server 0 cannot reach server 2 (in process): unreachable"));
  SetReachable(2, true);
  EXPECT_EQ(JoinAll(0)->incarnation(), 2u);
}

TEST_F(RunTest, StopEndsAJoinThatWaitsForAServer) {
  SetReachable(1, false);
  Pending<JoinReply> pending;
  StartJoin(0, RequestOf(0), pending);
  absl::Notification stopped;
  jobs_[0]->Stop([&stopped] { stopped.Notify(); });
  EXPECT_EQ(pending.Get().status(), absl::UnavailableError("this server is stopping"));
  stopped.WaitForNotification();
}

TEST_F(RunTest, TheLeadGivesTokensThatEveryServerAccepts) {
  EXPECT_FALSE(jobs_[1]->tokens().Check(WorkerId{0}, Incarnation{1}, "").ok());
  const JoinReply lead = JoinAll(0).value();
  EXPECT_FALSE(lead.token().empty());
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_EQ(jobs_[s]->tokens().Check(WorkerId{0}, Incarnation{1}, lead.token()),
              absl::OkStatus());
    EXPECT_FALSE(jobs_[s]->tokens().Check(WorkerId{1}, Incarnation{1}, lead.token()).ok());
  }
  // Only the lead gives tokens.
  EXPECT_EQ(Join(1, RequestOf(0, 1, lead.run()))->token(), "");
  EXPECT_EQ(Join(0, RequestOf(0, 1, lead.run()))->token(), lead.token());
}

TEST_F(RunTest, ARefusedRejoinChangesNothing) {
  const JoinReply joined = JoinAll(0).value();
  const auto rejoin = [&](uint64_t run, const absl::Status& allowed) {
    Pending<JoinReply> pending;
    jobs_[1]->Join(
        RequestOf(0, joined.incarnation(), run), [] { return false; }, pending.done(),
        [allowed] { return allowed; });
    return pending.Get().status();
  };
  const absl::Status denied = absl::PermissionDeniedError("token: wrong");
  EXPECT_EQ(rejoin(joined.run(), denied), denied);
  ExpectRefused(rejoin(joined.run() + 1, denied), "lost its state");
  EXPECT_EQ(rejoin(joined.run(), absl::OkStatus()), absl::OkStatus());
}

TEST_F(RunTest, NoWorkerChoosesItsIncarnation) {
  const JoinReply joined = JoinAll(0).value();
  for (uint32_t s = 0; s < kServers; ++s) {
    for (const uint64_t incarnation : {joined.incarnation() + 1, kLargest}) {
      const absl::Status refused = Join(s, RequestOf(0, incarnation, joined.run())).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
      EXPECT_FALSE(Heartbeat(s, 0, incarnation).fenced());
      EXPECT_FALSE(Leave(s, 0, incarnation, joined.run()).ok());
    }
    EXPECT_FALSE(Heartbeat(s, 0, joined.incarnation()).fenced());
    EXPECT_TRUE(Status(s).workers(0).live());
  }
}

TEST_F(RunTest, ALeaveOfAnotherRunIsRefused) {
  const JoinReply old = JoinAll(0).value();
  for (uint32_t s = 0; s < kServers; ++s) Restart(s);
  const JoinReply next = JoinAll(0).value();
  ASSERT_EQ(old.incarnation(), next.incarnation());
  for (uint32_t s = 0; s < kServers; ++s) {
    ExpectRefused(Leave(s, 0, old.incarnation(), old.run()), "lost its state");
    EXPECT_TRUE(Status(s).workers(0).live());
    EXPECT_TRUE(Leave(s, 0, next.incarnation(), next.run()).ok());
  }
}

TEST_F(RunTest, OnlyTheNewestRuleOfTheLeadOfThisRunIsFollowed) {
  const JoinReply joined = JoinAll(0).value();
  const auto set_slack = [this](uint32_t server, uint64_t run, uint64_t change, uint32_t slack) {
    SetModeRequest request;
    request.set_run(run);
    request.set_change(change);
    request.mutable_consistency()->set_mode(Consistency::Mode::ssp);
    request.mutable_consistency()->set_workers(4);
    request.mutable_consistency()->set_slack(slack);
    Pending<SetModeReply> pending;
    jobs_[server]->Call(request, pending.done());
    return pending.Get().status();
  };
  EXPECT_EQ(set_slack(0, 0, 0, 1), absl::OkStatus()) << "of an operator";
  EXPECT_EQ(Status(1).slack(), 1u);
  const uint64_t newest = EpochOf(0) + 1;
  ExpectRefused(set_slack(1, joined.run(), newest - 1, 2), "change: older than the newest one");
  ExpectRefused(set_slack(1, joined.run() + 1, newest + 1, 3),
                "server 1 lost its state: server 0 belongs to another run");
  EXPECT_EQ(set_slack(1, 0, newest + 1, 4).code(), absl::StatusCode::kInvalidArgument)
      << "an operator calls the lead";
  EXPECT_EQ(Status(1).slack(), 1u);
  EXPECT_EQ(set_slack(1, joined.run(), newest + 1, 5), absl::OkStatus());
  EXPECT_EQ(Status(1).slack(), 5u);
  EXPECT_EQ(set_slack(0, joined.run(), newest + 2, 6).code(), absl::StatusCode::kInvalidArgument)
      << "the lead follows no lead";
  EXPECT_EQ(Status(0).slack(), 1u);
}

TEST_F(RunTest, AnAdmissionMeantForAnotherServerIsRefused) {
  AdmitRequest request;
  request.set_job("train");
  request.set_server(2);
  request.set_run(5);
  request.set_incarnation(1);
  const auto admit = [this](uint32_t server, const AdmitRequest& r) {
    Pending<AdmitReply> pending;
    jobs_[server]->Call(r, pending.done());
    return pending.Get().status().code();
  };
  EXPECT_EQ(admit(1, request), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(admit(2, request), absl::StatusCode::kOk);
  request.set_server(0);
  EXPECT_EQ(admit(0, request), absl::StatusCode::kInvalidArgument);
  request.set_server(1);
  request.set_worker(4);
  EXPECT_EQ(admit(1, request), absl::StatusCode::kInvalidArgument);
  request.set_worker(0);
  request.set_incarnation(0);
  EXPECT_EQ(admit(1, request), absl::StatusCode::kInvalidArgument);
  request.set_job("other");
  EXPECT_EQ(admit(1, request), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace thinwire
