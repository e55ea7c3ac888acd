#include "admin/job_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

using State = JobCondition::State;
using Cause = JobCondition::Cause;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Time kStart = absl::UnixEpoch();

// Returns the reply of a server of a job whose two workers train: a shard that takes 0.5 s for a
// step, step 41 is open, and worker 1 has not finished it.
StatusReply Healthy() {
  StatusReply reply;
  reply.set_job("mnist");
  reply.set_target_workers(2);
  ShardStatus& shard = *reply.add_shards();
  shard.set_open(true);
  shard.set_frontier(41);
  shard.set_progress_seconds(0.5);
  shard.set_progress_seconds_ago(0.25);
  for (uint32_t i = 0; i < 2; ++i) {
    WorkerStatus& worker = *reply.add_workers();
    worker.set_worker(i);
    worker.set_incarnation(i + 1);
    worker.set_live(true);
    worker.set_heard_seconds_ago(0.5);
    worker.set_lease_seconds_left(9.5);
    worker.set_next(i == 0 ? 42 : 41);
  }
  return reply;
}

void Leave(WorkerStatus& worker) {
  worker.set_live(false);
  worker.set_left(true);
}

void Expire(WorkerStatus& worker) {
  worker.set_live(false);
  worker.set_heard_seconds_ago(12);
  worker.set_lease_seconds_left(-2);
}

JobCondition Of(const std::vector<ServerHistory>& servers, absl::Time now) {
  return ConditionOf(servers, SummaryOf(servers, now), now);
}

// Returns the condition of a job of two servers with the same reply, which CHANGE has changed.
JobCondition After(const std::function<void(StatusReply&)>& change) {
  StatusReply reply = Healthy();
  change(reply);
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  for (ServerHistory& server : servers) server.Add(reply, kStart);
  return Of(servers, kStart);
}

TEST(JobConditionTest, TheFirstRowThatAppliesDecides) {
  const auto pause = [](double seconds) {
    return [seconds](StatusReply& r) { r.mutable_shards(0)->set_progress_seconds_ago(seconds); };
  };
  const auto both = [](void (*change)(WorkerStatus&)) {
    return [change](StatusReply& r) {
      for (WorkerStatus& worker : *r.mutable_workers()) change(worker);
    };
  };
  struct Case {
    const char* name;
    std::function<void(StatusReply&)> change;
    State state;
    Cause cause = Cause::kNone;
    const char* text;
  };
  const Case cases[] = {
      {"healthy", [](StatusReply&) {}, State::kTraining, Cause::kNone, "training"},
      {"a pause that is not long", pause(1.9), State::kTraining, Cause::kNone, "training"},
      {"no worker has joined", [](StatusReply& r) { r.clear_workers(), r.clear_shards(); },
       State::kStarting, Cause::kNone, "starting"},
      {"a shut shard", [](StatusReply& r) { r.mutable_shards(0)->set_open(false); },
       State::kStarting, Cause::kNone, "starting"},
      {"a slow worker", pause(4), State::kWaiting, Cause::kSlowWorker, "waiting for worker 1"},
      {"steps that take 60 s",
       [](StatusReply& r) {
         r.mutable_shards(0)->set_progress_seconds(60);
         r.mutable_shards(0)->set_progress_seconds_ago(100);
       },
       State::kTraining, Cause::kNone, "training"},
      {"a long first step",
       [](StatusReply& r) {
         r.mutable_shards(0)->set_progress_seconds(0);
         r.mutable_shards(0)->set_progress_seconds_ago(29);
       },
       State::kTraining, Cause::kNone, "training"},
      {"a silent worker",
       [](StatusReply& r) {
         r.mutable_shards(0)->set_progress_seconds_ago(6);
         r.mutable_workers(1)->set_heard_seconds_ago(6);
         r.mutable_workers(1)->set_lease_seconds_left(4);
       },
       State::kWaiting, Cause::kSilentWorker, "waiting for worker 1"},
      {"a silent worker in a job that goes on",
       [](StatusReply& r) {
         r.mutable_workers(1)->set_heard_seconds_ago(6);
         r.mutable_workers(1)->set_lease_seconds_left(4);
       },
       State::kTraining, Cause::kNone, "training"},
      {"a lost worker", [](StatusReply& r) { Expire(*r.mutable_workers(1)); }, State::kTraining,
       Cause::kNone, "training"},
      {"all workers are lost", both(Expire), State::kWaiting, Cause::kNoWorker,
       "waiting for a live worker"},
      {"all workers have left with errors", both([](WorkerStatus& worker) {
         Leave(worker);
         worker.set_failed(true);
       }),
       State::kWaiting, Cause::kNoWorker, "waiting for a live worker"},
      {"all workers have left in order", both(Leave), State::kStopping, Cause::kNone, "stopping"},
      {"one has left after the last step, and one was drained",
       [](StatusReply& r) {
         for (WorkerStatus& worker : *r.mutable_workers()) Leave(worker);
         r.mutable_workers(1)->set_finished(true);
       },
       State::kFinished, Cause::kNone, "finished"},
      {"one of two has left after the last step",
       [](StatusReply& r) {
         Leave(*r.mutable_workers(1));
         r.mutable_workers(1)->set_finished(true);
       },
       State::kTraining, Cause::kNone, "training"},
      {"servers that were restarted after the end",
       [](StatusReply& r) {
         for (WorkerStatus& worker : *r.mutable_workers()) Leave(worker);
         r.mutable_shards(0)->set_open(false);
       },
       State::kStarting, Cause::kNone, "starting"},
      {"all workers were asked to stop", [](StatusReply& r) { r.set_stopping(true); },
       State::kStopping, Cause::kNone, "stopping"},
      {"a diverged worker beside one that trains",
       [](StatusReply& r) {
         Leave(*r.mutable_workers(1));
         r.mutable_workers(1)->set_diverged("the loss of step 3 is not finite");
       },
       State::kDiverged, Cause::kNone, "diverged"},
      {"a server waits for the lead", [](StatusReply& r) { r.set_awaits_rollback(true); },
       State::kWaiting, Cause::kRollback, "waiting for servers 0, 1"},
  };
  std::set<State> states;
  std::set<Cause> causes;
  for (const Case& c : cases) {
    const JobCondition condition = After(c.change);
    EXPECT_STREQ(NameOf(condition.state), NameOf(c.state)) << c.name;
    EXPECT_STREQ(NameOf(condition.cause), NameOf(c.cause)) << c.name;
    EXPECT_EQ(StateText(condition), c.text) << c.name;
    states.insert(condition.state);
    causes.insert(condition.cause);
  }
  EXPECT_EQ(states.size(), JobStates().size());
  EXPECT_EQ(causes.size(), 5u) << "all except kServer";
}

TEST(JobConditionTest, AHealthyJobHasNoProblem) {
  const JobCondition condition = After([](StatusReply&) {});
  EXPECT_THAT(condition.problems, IsEmpty());
  EXPECT_THAT(condition.unreachable, IsEmpty());
  EXPECT_THAT(condition.lost, IsEmpty());
}

TEST(JobConditionTest, ADeadServerLeavesTheSummaryAtItsFirstFailedCall) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  for (ServerHistory& server : servers) server.Add(Healthy(), kStart);
  servers[1].AddFailure(kStart + absl::Seconds(1));
  // The workers of a job whose server 1 is dead push to server 0, and then wait for server 1.
  StatusReply alone = Healthy();
  alone.mutable_shards(0)->set_progress_seconds_ago(120);
  servers[0].Add(alone, kStart + absl::Seconds(1));
  const absl::Time now = kStart + absl::Seconds(1);
  const JobSummary summary = SummaryOf(servers, now);
  EXPECT_EQ(summary.answered_count, 1u);
  EXPECT_THAT(summary.unfinished, IsEmpty());
  const JobCondition condition = Of(servers, now);
  EXPECT_EQ(StateText(condition), "waiting for server 1");
  EXPECT_EQ(condition.cause, Cause::kServer);
  EXPECT_THAT(condition.unreachable, ElementsAre(1));
  EXPECT_EQ(condition.waiting, absl::Seconds(1));
  EXPECT_THAT(condition.problems, ElementsAre("server 1 has not answered for 1.0 s"));
  // The restarted server answers.
  servers[1].Add(Healthy(), now);
  servers[0].Add(Healthy(), now);
  EXPECT_EQ(StateText(Of(servers, now)), "training");
}

TEST(JobConditionTest, AServerWhoseCallIsPendingForLongIsUnreachable) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  for (ServerHistory& server : servers) server.Add(Healthy(), kStart);
  servers[0].Add(Healthy(), kStart + ServerHistory::kAnswerLimit);
  EXPECT_THAT(Of(servers, kStart + ServerHistory::kAnswerLimit).unreachable, IsEmpty());
  EXPECT_THAT(Of(servers, kStart + ServerHistory::kAnswerLimit + absl::Seconds(1)).unreachable,
              ElementsAre(1));
}

TEST(JobConditionTest, WithoutAnyAnswerTheJobWaitsForItsServers) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  EXPECT_EQ(StateText(Of(servers, kStart)), "starting") << "not asked yet";
  for (ServerHistory& server : servers) server.AddFailure(kStart);
  EXPECT_EQ(StateText(Of(servers, kStart)), "waiting for servers 0, 1");
  // A lead that no worker has joined, and whose peers are not there yet, starts.
  StatusReply reply;
  servers[0].Add(reply, kStart);
  const JobCondition condition = Of(servers, kStart);
  EXPECT_EQ(StateText(condition), "starting");
  EXPECT_THAT(condition.unreachable, ElementsAre(1));
}

TEST(JobConditionTest, ALostWorkerIsMissingUntilTheOperatorWantsFewer) {
  const auto lose = [](StatusReply& r) { Expire(*r.mutable_workers(1)); };
  JobCondition condition = After(lose);
  EXPECT_THAT(condition.lost, ElementsAre(1));
  EXPECT_THAT(condition.problems, ElementsAre("worker 1 was lost: its lease has ended"));
  condition = After([&](StatusReply& r) {
    lose(r);
    r.set_target_workers(1);
  });
  EXPECT_THAT(condition.lost, IsEmpty());
  EXPECT_THAT(condition.problems, IsEmpty());
  condition = After([](StatusReply& r) {
    Leave(*r.mutable_workers(0));
    r.mutable_workers(0)->set_failed(true);
  });
  EXPECT_THAT(condition.problems, ElementsAre("worker 0 has left with an error"));
  condition = After([](StatusReply& r) { Leave(*r.mutable_workers(0)); });
  EXPECT_THAT(condition.lost, IsEmpty()) << "a drained worker is not lost";
}

TEST(JobConditionTest, TheCauseOfAWaitIsAProblem) {
  JobCondition condition =
      After([](StatusReply& r) { r.mutable_shards(0)->set_progress_seconds_ago(4); });
  EXPECT_THAT(condition.problems, ElementsAre("worker 1 did not finish step 41 within 4.0 s"));
  condition = After([](StatusReply& r) {
    r.mutable_workers(1)->set_heard_seconds_ago(6);
    r.mutable_workers(1)->set_lease_seconds_left(4);
  });
  EXPECT_THAT(condition.problems,
              ElementsAre("worker 1 has been silent for 6.0 s; its lease ends in 4.0 s"));
  condition = After([](StatusReply& r) {
    r.mutable_shards(0)->set_progress_seconds_ago(4);
    r.mutable_workers(1)->set_next(42);
  });
  EXPECT_EQ(condition.state, State::kWaiting);
  EXPECT_THAT(condition.problems, ElementsAre("no progress for 4.0 s"));
}

TEST(JobConditionTest, TheSymptomOfADivergedJobNamesItsWorker) {
  const JobCondition condition = After([](StatusReply& r) {
    Leave(*r.mutable_workers(1));
    r.mutable_workers(1)->set_diverged("the loss of step 3 is not finite");
  });
  EXPECT_EQ(condition.symptom, "worker 1: the loss of step 3 is not finite");
  EXPECT_THAT(condition.problems, Contains(HasSubstr("diverged: worker 1: the loss")));
}

}  // namespace
}  // namespace thinwire
