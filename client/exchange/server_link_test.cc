#include "client/exchange/server_link.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/exchange/exchange_fixture.h"
#include "client/exchange/push_spans.h"
#include "common/codec/codec.h"
#include "common/time/clock.h"
#include "common/time/trace.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

class ServerLinkTest : public ExchangeFixture {
 protected:
  // Queues and sends a push of STEP for every shard of server 0, one message per push.
  void PushAll(uint64_t step) {
    loop_->Run([this, step] {
      pushes_.BeginStep(Step{step}, 1, 1, 1);
      for (const ShardId shard : shards_) {
        const std::vector<float> values(4096, static_cast<float>(shard.value + 1));
        std::vector<std::byte> payload(fp32_->MaxPayloadBytes(4096));
        payload.resize(fp32_->Encode(values, RandomKeys(), payload));
        reads_.ExpectAfterPush(shard, Step{step + 1});
        links_[0]->queue().Push({.shard = shard,
                                 .step = Step{step},
                                 .examples = 1,
                                 .payload = ByteChain(std::move(payload))});
        links_[0]->SendQueued();
        reads_.MergeKept(shard);
      }
    });
  }

  // Returns when the link has handled the replies to all earlier calls of Join.
  void DrainJoins() {
    absl::Notification answered;
    transport_.Join(ServerId{0}, rejoin_, absl::Minutes(1),
                    [&](const absl::StatusOr<JoinReply>&) { answered.Notify(); });
    answered.WaitForNotification();
    loop_->Run([] {});
  }

  const std::vector<ShardId> shards_ = partition_.ShardsOf(ServerId{0});
  const std::unique_ptr<const Codec> fp32_ = *MakeCodec({.id = CodecId::kFp32});
};

TEST_F(ServerLinkTest, PushesAndVerdictsKeepTheirOrder) {
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(verdicts(), shards_);
  std::vector<ShardId> received;
  for (const PushEntry& push : servers_[0].pushes()) received.push_back(push.shard);
  EXPECT_EQ(received, shards_);
  EXPECT_EQ(counters().reconnects(), 0u);
}

TEST_F(ServerLinkTest, HeartbeatsMeasureTheOffsetOfTheServersClock) {
  // Static, because the transport's threads may use them until the fixture is destroyed.
  static ManualClock clock;
  static Tracer tracer("worker 2", clock);
  clock.Advance(absl::Seconds(1000));
  servers_[0].set_unix_micros(absl::ToUnixMicros(clock.Now() + absl::Seconds(5)));
  loop_->Run([this] {
    options_.tracer = &tracer;
    links_[0]->StartHeartbeats();
  });
  // The link sends a heartbeat when the one before is answered.
  while (servers_[0].heartbeat_count() < 2) std::this_thread::yield();
  EXPECT_TRUE(absl::StrContains(
      tracer.Json(), R"("clocks":[{"process":"server 0","offset_us":5000000,"round_trip_us":0}])"));
}

TEST_F(ServerLinkTest, PushesAreTracedUntilTheirVerdicts) {
  static ManualClock clock;
  static Tracer tracer("worker 2", clock);
  PushSpans spans(&tracer, partition_, Step{7});
  for (const ShardId shard : shards_) {
    spans.Queued(shard);
    clock.Advance(absl::Microseconds(10));
  }
  EXPECT_FALSE(absl::StrContains(tracer.Json(), "push until verdicts"));
  for (const ShardId shard : shards_) spans.Judged(shard);
  EXPECT_TRUE(absl::StrContains(
      tracer.Json(),
      absl::StrCat(R"("name":"push until verdicts","cat":"push to server","ph":"X","ts":0,"dur":)",
                   10 * shards_.size())));
}

// Counts the lines of the log that contain a text.
class LineCounter final : public google::LogSink {
 public:
  explicit LineCounter(std::string text) : text_(std::move(text)) { google::AddLogSink(this); }
  ~LineCounter() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t size) override {
    if (std::string_view(message, size).find(text_) != std::string_view::npos) ++count_;
  }
  int count() const { return count_; }

 private:
  const std::string text_;
  std::atomic<int> count_ = 0;
};

TEST_F(ServerLinkTest, ALostStreamIsReopenedAndUnansweredPushesAreSentAgain) {
  const LineCounter lines("server 0 (in process): the connection was lost");
  transport_.LoseReplies(ServerId{0}, 2);
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(counters().reconnects(), 2u);
  EXPECT_EQ(lines.count(), 2);
  EXPECT_EQ(servers_[0].pushes().size(), shards_.size()) << "each push counts once";
  loop_->Run([this] { EXPECT_TRUE(links_[0]->queue().unjudged().empty()); });
}

TEST_F(ServerLinkTest, ALostStreamIsReopenedAlthoughNothingIsQueued) {
  PushAll(0);
  WaitForVerdicts(shards_.size());
  transport_.DropStreams(ServerId{0});
  while (counters().reconnects() == 0) std::this_thread::yield();
  // Returns true if the server will count as refusing streams unless the link opens one.
  const auto lost = [this] {
    bool outage = false;
    loop_->Run([&] {
      const absl::Time later = loop_->Now() + 2 * options_.silence;
      links_[0]->liveness().CallAnswered(later);
      outage = links_[0]->liveness().OutageAt(later, options_.silence).has_value();
    });
    return outage;
  };
  while (lost()) std::this_thread::yield();
  EXPECT_EQ(servers_[0].stream_count(), 1);
  EXPECT_EQ(counters().reconnects(), 1u);
}

TEST_F(ServerLinkTest, ARefusedStreamIsRetried) {
  transport_.Refuse(ServerId{0}, true);
  PushAll(0);
  while (counters().reconnects() < 3) std::this_thread::yield();
  loop_->Run([this] {
    const absl::Time later = loop_->Now() + options_.silence + absl::Seconds(1);
    const auto outage = links_[0]->liveness().OutageAt(later, options_.silence);
    ASSERT_TRUE(outage.has_value());
    EXPECT_EQ(outage->last_error.code(), absl::StatusCode::kUnavailable);
  });
  transport_.Refuse(ServerId{0}, false);
  WaitForVerdicts(shards_.size());
}

class FailureObserver final : public ServerLink::Observer {
 public:
  void OnMessage(ServerLink&, const ServerFrame&) override { ADD_FAILURE() << "no message"; }
  void OnQueueRoom() override {}
  void OnAdopted(ServerLink&) override {}
  void OnFailure(absl::Status failure) override {
    failure_ = std::move(failure);
    failed_.Notify();
  }
  void OnRollback(Generation) override { ADD_FAILURE() << "no rollback"; }
  absl::Status WaitForFailure() {
    failed_.WaitForNotification();
    return failure_;
  }

 private:
  absl::Status failure_;
  absl::Notification failed_;
};

TEST_F(ServerLinkTest, NoStreamIsOpenedWithoutMessages) {
  FailureObserver observer;
  ServerLink link(parts_, ServerId{1}, rejoin_, JoinReply(), absl::Seconds(1), observer);
  transport_.Refuse(ServerId{1}, true);
  loop_->Run([&] { link.SendQueued(); });
  transport_.Refuse(ServerId{1}, false);
  loop_->Run([&] { link.Close(); });
  EXPECT_EQ(counters().reconnects(), 0u);
}

TEST_F(ServerLinkTest, ShardsWithoutValuesAreSeeded) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(servers_[0].seed_count() + servers_[1].seed_count(),
            static_cast<int>(partition_.shard_count()));
  EXPECT_EQ(servers_[0].masters(shards_[0])[0], initial_[0]);
}

TEST_F(ServerLinkTest, HeartbeatsOfTheLeadReportLiveWorkers) {
  EXPECT_TRUE(job_news_.live().empty());
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (job_news_.live().empty()) std::this_thread::yield();
  EXPECT_EQ(job_news_.live(), std::vector{WorkerId{2}});
}

TEST_F(ServerLinkTest, AServerThatKeptItsStateIsJoinedAgainAndGetsTheSamePushes) {
  transport_.Hold(ServerId{0}, true);
  PushAll(0);
  while (servers_[0].pushes().size() < shards_.size()) std::this_thread::yield();
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (counters().rejoins() == 0) std::this_thread::yield();
  transport_.Hold(ServerId{0}, false);
  WaitForVerdicts(shards_.size());

  EXPECT_EQ(servers_[0].pushes().size(), shards_.size()) << "each push counts once";
  // The server drops messages with another epoch than its own.
  const std::vector<PushEntry> arrivals = servers_[0].arrivals();
  ASSERT_EQ(arrivals.size(), 2 * shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const PushEntry& first = arrivals[i];
    const PushEntry& second = arrivals[i + shards_.size()];
    EXPECT_EQ(first.shard, second.shard);
    EXPECT_EQ(first.step, second.step);
    EXPECT_EQ(first.payload.ToVector(), second.payload.ToVector());
  }
  EXPECT_EQ(counters().rejoins(), 1u);
  EXPECT_EQ(counters().reconnects(), 1u);
  EXPECT_EQ(counters().accepted_pushes(), shards_.size());
  EXPECT_EQ(counters().repeated_pushes(), shards_.size());
  const std::vector<JoinRequest> joins = servers_[0].joins();
  ASSERT_EQ(joins.size(), 2u);
  EXPECT_EQ(joins[1].SerializeAsString(), rejoin_.SerializeAsString());
}

TEST_F(ServerLinkTest, AMessageWithAnotherEpochIsDroppedAndTheServerIsJoinedAgain) {
  servers_[0].HoldReads({shards_[0]}, WorkerId{3});
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  while (!absl::StrContains(report_.waiting(), "worker 3")) std::this_thread::yield();
  servers_[0].Restart(/*keep_state=*/true);
  servers_[0].ReleaseReads();  // sends a message
  EXPECT_TRUE(progress_.WaitAll().ok()) << "the read was sent again";
  EXPECT_EQ(counters().rejoins(), 1u);
}

// A worker that computes has no unanswered entry.
TEST_F(ServerLinkTest, ALinkWithoutEntriesJoinsAgainAndOpensAStream) {
  PushAll(0);
  WaitForVerdicts(shards_.size());
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  servers_[0].Restart(/*keep_state=*/true);
  transport_.DropStreams(ServerId{0});
  while (counters().rejoins() == 0) std::this_thread::yield();
  while (servers_[0].stream_count() == 0) std::this_thread::yield();
  EXPECT_EQ(servers_[0].arrivals().size(), shards_.size());
}

TEST_F(ServerLinkTest, AServerThatIsRestartedTwiceIsJoinedTwice) {
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  for (uint64_t i = 0; i < 2; ++i) {
    servers_[0].Restart(/*keep_state=*/true);
    PushAll(i);
    WaitForVerdicts((i + 1) * shards_.size());
  }
  EXPECT_EQ(counters().rejoins(), 2u);
  EXPECT_EQ(servers_[0].pushes().size(), 2 * shards_.size());
}

TEST_F(ServerLinkTest, AJoinIsRepeatedAfterAnErrorThatMayPass) {
  servers_[0].FailJoins({absl::UnavailableError("recovering"), absl::DeadlineExceededError("")});
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(counters().rejoins(), 1u);
  EXPECT_EQ(servers_[0].joins().size(), 1u + 3u);
}

// A server continues from a checkpoint before the Join of this process.
TEST_F(ServerLinkTest, AServerThatDoesNotKnowTheProcessIsJoinedAfterTheLead) {
  servers_[1].FailJoins({absl::NotFoundError("server 0 has not assigned this incarnation")});
  servers_[1].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  while (counters().rejoins() == 0) std::this_thread::yield();
  EXPECT_EQ(servers_[1].joins().size(), 1u + 2u);
  const std::vector<JoinRequest> lead = servers_[0].joins();
  ASSERT_EQ(lead.size(), 1u + 1u);
  EXPECT_EQ(lead.back().incarnation(), rejoin_.incarnation());
  EXPECT_EQ(lead.back().run(), rejoin_.run());
}

TEST_F(ServerLinkTest, ALeadThatDoesNotKnowTheProcessIsAFailure) {
  servers_[0].FailJoins({absl::NotFoundError("not assigned")});
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), absl::AbortedError("server 0 (in process): not assigned"));
}

TEST_F(ServerLinkTest, AServerThatNeverAcceptsAJoinIsAnOutage) {
  servers_[0].FailJoins(std::deque<absl::Status>(1000, absl::UnavailableError("recovering")));
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (servers_[0].joins().size() < 5) std::this_thread::yield();
  loop_->Run([this] {
    const absl::Time later = loop_->Now() + absl::Hours(1);
    links_[0]->liveness().CallAnswered(later);
    const auto outage = links_[0]->liveness().OutageAt(later, options_.silence);
    ASSERT_TRUE(outage.has_value());
    EXPECT_EQ(outage->state, ServerState::kRefusing);
    EXPECT_EQ(outage->last_error, absl::UnavailableError("recovering"));
  });
}

TEST_F(ServerLinkTest, AServerThatLostItsStateIsAFailureWithItsMessage) {
  servers_[1].Restart(/*keep_state=*/false);
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), absl::AbortedError("server 1 (in process): server 1 lost its state"));
}

TEST_F(ServerLinkTest, AnotherRunIsAFailure) {
  servers_[1].Restart(/*keep_state=*/true);
  servers_[1].set_run(RunId{2});
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(),
            absl::AbortedError("server 1 (in process): lost its state: it belongs to another run "
                               "(expected run 0000000000000001, got 0000000000000002)"));
  EXPECT_EQ(counters().rejoins(), 0u);
}

TEST_F(ServerLinkTest, ALowerGenerationIsAFailure) {
  servers_[1].Restart(/*keep_state=*/true);
  servers_[1].set_generation(Generation{0});
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), absl::AbortedError("server 1 (in process): lost the job's state "
                                                 "(expected generation 1, got 0)"));
  EXPECT_EQ(servers_[1].joins().size(), 1u);
}

// The server continues from a state in which the worker had finished no step. It has no parameters
// of the versions that the worker holds.
TEST_F(ServerLinkTest, WithoutRoundsAServerThatContinuesAloneIsReadInFullBeforeItGetsPushes) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  servers_[0].SaveCheckpoint();
  PushAll(0);
  WaitForVerdicts(shards_.size());
  ASSERT_TRUE(progress_.WaitAll().ok());
  const int answer_count = servers_[0].answer_count();
  transport_.Refuse(ServerId{0}, true);
  PushAll(1);
  servers_[0].RollBack(Generation{2});
  servers_[0].HoldReads(shards_, WorkerId{3});
  transport_.Refuse(ServerId{0}, false);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (!absl::StrContains(report_.waiting(), "step 1: waits for worker 3 (shard")) {
    std::this_thread::yield();
  }
  EXPECT_EQ(servers_[0].arrivals().size(), shards_.size()) << "no push before the parameters";
  loop_->Run([this] {
    for (const ShardId shard : shards_) EXPECT_FALSE(replica_.holds(shard));
  });
  servers_[0].ReleaseReads();
  WaitForVerdicts(2 * shards_.size());
  const std::vector<PushEntry> arrivals = servers_[0].arrivals();
  ASSERT_EQ(arrivals.size(), 2 * shards_.size());
  for (size_t i = shards_.size(); i < arrivals.size(); ++i) EXPECT_EQ(arrivals[i].step, Step{1});
  EXPECT_EQ(servers_[0].answer_count(), answer_count + 2 * static_cast<int>(shards_.size()))
      << "the parameters of step 1, then those of step 2";
  // The server has applied the push of step 1 alone.
  for (const ShardId shard : shards_) {
    EXPECT_EQ(servers_[0].masters(shard)[0], 1.5f - static_cast<float>(shard.value + 1));
  }
  EXPECT_EQ(counters().rejoins(), 1u);
  EXPECT_EQ(counters().rollbacks(), 0u) << "the step stays";
}

TEST_F(ServerLinkTest, AWorkerThatComputesReadsAgainAfterTheServerCameBackAndKeepsItsParameters) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  servers_[0].SaveCheckpoint();
  const int answer_count = servers_[0].answer_count();
  servers_[0].RollBack(Generation{2});
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (counters().rejoins() == 0) std::this_thread::yield();
  const int read_count = answer_count + static_cast<int>(shards_.size());
  while (servers_[0].answer_count() < read_count) std::this_thread::yield();
  loop_->Run([this] {
    for (const ShardId shard : shards_) {
      EXPECT_FALSE(replica_.holds(shard)) << "the answer was dropped: the worker still computes";
    }
  });
  PushAll(0);
  WaitForVerdicts(shards_.size());
  ASSERT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(servers_[0].answer_count(), answer_count + 2 * static_cast<int>(shards_.size()));
}

// The worker holds version 2 of the lost state. Version 1 of the server's new state is another one.
TEST_F(ServerLinkTest, WithoutRoundsADeltaOfTheNewStateIsNotAppliedToTheLostOne) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  servers_[0].SaveCheckpoint();
  for (uint64_t i = 0; i < 2; ++i) {
    PushAll(i);
    WaitForVerdicts((i + 1) * shards_.size());
  }
  ASSERT_TRUE(progress_.WaitAll().ok());
  loop_->Run([this] { EXPECT_EQ(replica_.held_version(shards_[0]), Version{2}); });
  std::atomic<int> answer_count = 0;
  std::atomic<int> delta_count = 0;
  servers_[0].set_answer([&](ParametersEntry& answer) {
    ++answer_count;
    if (answer.step != Step{3} || delta_count++ > 0) return;
    answer.kind = Parameters::ADD;
    answer.version = Version{1};
  });
  servers_[0].RollBack(Generation{2});
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  PushAll(2);
  WaitForVerdicts(3 * shards_.size());
  for (bool answered = false; !answered;) {
    loop_->Run([&] { answered = links_[0]->queue().unanswered().empty(); });
  }
  EXPECT_GT(answer_count, static_cast<int>(2 * shards_.size())) << "a shard was read again in full";
  for (const ShardId shard : shards_) {
    const Segment& segment = partition_.segments(shard)[0];
    EXPECT_EQ(replica_.tensor(0)[segment.offset], servers_[0].masters(shard)[0]);
  }
}

TEST_F(ServerLinkTest, WithoutRoundsAServerMayContinueAloneTwice) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  servers_[0].SaveCheckpoint();
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  for (uint64_t i = 0; i < 2; ++i) {
    servers_[0].RollBack(Generation{2 + i});
    PushAll(i);
    WaitForVerdicts((i + 1) * shards_.size());
  }
  EXPECT_EQ(counters().rejoins(), 2u);
}

// A link to a server of a job with rounds.
class RoundLinkTest : public ExchangeFixture {
 protected:
  RoundLinkTest() : ExchangeFixture(4, 4096, /*by_round=*/true) {}
};

TEST_F(RoundLinkTest, AHigherGenerationInAHeartbeatReplyIsARollback) {
  servers_[1].RollBack(Generation{2});
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForRollback(), Generation{2});
  EXPECT_EQ(servers_[1].joins().size(), 1u) << "the client joins the lead first";
}

TEST_F(RoundLinkTest, AHigherGenerationInAMessageIsARollback) {
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
  servers_[1].HoldReads(all, WorkerId{3});
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  while (!absl::StrContains(report_.waiting(), "worker 3")) std::this_thread::yield();
  servers_[1].set_generation(Generation{2});
  servers_[1].ReleaseReads();  // sends a message
  EXPECT_EQ(WaitForRollback(), Generation{2});
}

TEST_F(RoundLinkTest, AHigherGenerationInTheReplyToARejoinIsARollback) {
  servers_[1].HoldJoins(true);
  servers_[1].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  while (servers_[1].joins().size() < 2) std::this_thread::yield();
  servers_[1].set_generation(Generation{2});
  servers_[1].HoldJoins(false);
  EXPECT_EQ(WaitForRollback(), Generation{2});
  EXPECT_EQ(counters().rejoins(), 0u);
}

TEST_F(RoundLinkTest, ALowerGenerationIsAFailure) {
  servers_[1].RollBack(Generation{0});
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), absl::AbortedError("server 1 (in process): lost the job's state "
                                                 "(expected generation 1, got 0)"));
}

// The server waits for the lead to choose the step from which all servers continue.
TEST_F(RoundLinkTest, AServerThatAwaitsItsRollbackIsCalledUntilItHasTheNewGeneration) {
  servers_[1].FailJoins(std::deque<absl::Status>(
      1000, absl::UnavailableError("server 1 waits for server 0 to choose the checkpoint")));
  servers_[1].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  while (servers_[1].joins().size() < 3) std::this_thread::yield();
  servers_[1].RollBack(Generation{2});
  EXPECT_EQ(WaitForRollback(), Generation{2});
  EXPECT_EQ(counters().rejoins(), 0u);
}

TEST_F(ServerLinkTest, AReplyToJoinIsIgnoredAfterClose) {
  servers_[0].HoldJoins(true);
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (servers_[0].joins().size() < 2) std::this_thread::yield();
  loop_->Run([this] { links_[0]->Close(); });
  servers_[0].HoldJoins(false);
  DrainJoins();
  EXPECT_EQ(counters().rejoins(), 0u);
  EXPECT_EQ(servers_[0].stream_count(), 0);
}

// Each reply to a heartbeat shows the new epoch while the Join is pending.
TEST_F(ServerLinkTest, OneJoinIsPendingAtATime) {
  servers_[0].HoldJoins(true);
  servers_[0].Restart(/*keep_state=*/true);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (servers_[0].joins().size() < 2) std::this_thread::yield();
  const int beats = servers_[0].heartbeat_count();
  while (servers_[0].heartbeat_count() < beats + 3) std::this_thread::yield();
  EXPECT_EQ(servers_[0].joins().size(), 2u);
  servers_[0].HoldJoins(false);
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(servers_[0].joins().size(), 2u);
}

TEST_F(ServerLinkTest, AHeartbeatReportsAFencedWorker) {
  servers_[1].Fence();
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), FencedError({.worker = WorkerId{2}}));
}

TEST_F(ServerLinkTest, AResumedLinkSendsEntriesWhenAHeartbeatIsAnswered) {
  loop_->Run([this] { links_[0]->Resume(); });
  PushAll(0);
  transport_.Hold(ServerId{0}, false);  // returns after all earlier messages have been delivered
  EXPECT_TRUE(servers_[0].pushes().empty());
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  WaitForVerdicts(shards_.size());
}

TEST_F(ServerLinkTest, AResumedLinkOfAFencedWorkerSendsNothing) {
  servers_[0].Fence();
  loop_->Run([this] { links_[0]->Resume(); });
  PushAll(0);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), FencedError({.worker = WorkerId{2}}));
  transport_.Hold(ServerId{0}, false);  // returns after all earlier messages have been delivered
  EXPECT_TRUE(servers_[0].pushes().empty());
}

// A server that answers every frame with bytes that are not a valid message.
class MalformedServer final : public InProcessServer {
 public:
  void Opened(uint64_t, Peer peer) override { peer_ = std::move(peer); }
  void Frame(uint64_t, const ByteChain&) override {
    peer_.send(ByteChain(std::vector<std::byte>(5, std::byte{0xff})));
  }
  void Closed(uint64_t) override {}
  absl::StatusOr<JoinReply> Join(const JoinRequest&) override { return JoinReply(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override {
    return HeartbeatReply();
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest&) override { return LeaveReply(); }

 private:
  Peer peer_;
};

TEST_F(ServerLinkTest, AMalformedMessageIsAnErrorThatNamesTheServer) {
  MalformedServer server;
  InProcessTransport transport({&server});
  const ExchangeParts parts = {.options = options_,
                               .partition = partition_,
                               .transport = transport,
                               .loop = loop_,
                               .replica = replica_,
                               .encoder = *encoder_,
                               .tuner = nullptr,
                               .meter = meter_,
                               .listener = progress_,
                               .report = report_,
                               .worker_news = worker_news_,
                               .job_news = job_news_,
                               .deals = deals_};
  FailureObserver observer;
  ServerLink link(parts, ServerId{0}, rejoin_, JoinReply(), absl::Seconds(1), observer);
  loop_->Run([&] {
    link.queue().Read(shards_[0], Step{0});
    link.SendQueued();
  });
  const absl::Status failure = observer.WaitForFailure();
  EXPECT_EQ(failure.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(failure.message()).find("server 0 (in process): "), 0u) << failure;
  loop_->Run([&] { link.Close(); });
}

}  // namespace
}  // namespace thinwire::client
