#include "server/protocols/membership/admission_lead.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/inline_executor.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Stores all calls until the test answers them.
class HeldPeers final : public Peers {
 public:
  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (there)");
  }
  void Start(ServerId, AnyPeerCall call) override {
    calls_.push_back(std::get<PeerCall<AdmitRequest>>(std::move(call)));
  }
  size_t call_count() const { return calls_.size(); }
  // Answers the oldest call and returns its request.
  AdmitRequest Answer(const absl::StatusOr<AdmitReply>& reply) {
    const PeerCall<AdmitRequest> call = std::move(calls_.front());
    calls_.pop_front();
    call.done(reply);
    return call.request;
  }
  AdmitRequest Accept(uint64_t epoch) {
    AdmitReply reply;
    reply.set_epoch(epoch);
    return Answer(reply);
  }

 private:
  std::deque<PeerCall<AdmitRequest>> calls_;
};

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

// Counts the records.
class CountingStore final : public DecisionStore {
 public:
  void RecordLead(const Recorded& then) override {
    ++record_count;
    then(absl::OkStatus());
  }
  void RecordDeal(const Deal&, const Recorded&) override { ADD_FAILURE(); }
  absl::Status StoreRule(const SetModeRequest&) override { return absl::OkStatus(); }

  int record_count = 0;
};

JobState StateOf(uint32_t server_count) {
  return JobState({.job = "train", .run = RunId{9}}, Rule::Sync(8), {}, absl::Seconds(10),
                  server_count);
}

class AdmissionLeadTest : public testing::Test {
 protected:
  void Announce(uint32_t worker, uint64_t incarnation) {
    result_.reset();
    admission_.Announce(WorkerId{worker}, Incarnation{incarnation}, At(0),
                        [this](const absl::Status& status) { result_ = status; });
  }

  HeldPeers peers_;
  CountingStore store_;
  InlineExecutor control_;
  JobState state_ = StateOf(3);
  const WorkerTokens tokens_{"train", "key"};
  AdmissionLead admission_{state_, tokens_, &peers_, store_, control_};
  std::optional<absl::Status> result_;
};

TEST_F(AdmissionLeadTest, AProcessIsAdmittedWhenEveryServerHasAgreed) {
  Announce(4, 7);
  const AdmitRequest first = peers_.Accept(101);
  EXPECT_EQ(first.job(), "train");
  EXPECT_EQ(first.run(), 9u);
  EXPECT_EQ(first.token_key(), "key");
  EXPECT_EQ(first.server(), 1u);
  EXPECT_EQ(first.epoch(), 0u);
  EXPECT_EQ(first.worker(), 4u);
  EXPECT_EQ(first.incarnation(), 7u);
  EXPECT_FALSE(result_.has_value());
  EXPECT_EQ(peers_.Accept(102).server(), 2u);
  EXPECT_EQ(result_, absl::OkStatus());
  // From now on, the lead states the epochs.
  Announce(5, 1);
  EXPECT_EQ(peers_.Accept(101).epoch(), 101u);
  EXPECT_EQ(peers_.Accept(102).epoch(), 102u);
  EXPECT_EQ(result_, absl::OkStatus());
}

TEST_F(AdmissionLeadTest, TheEpochsAreRecordedBeforeAProcessIsAdmittedAndAfterEveryChange) {
  Announce(4, 7);
  peers_.Accept(101);
  EXPECT_EQ(store_.record_count, 0);
  peers_.Accept(102);
  EXPECT_EQ(store_.record_count, 1);
  EXPECT_EQ(state_.admitted, (std::vector<Epoch>{Epoch{}, Epoch{101}, Epoch{102}}));
  Announce(5, 1);
  peers_.Accept(101);
  peers_.Accept(102);
  EXPECT_EQ(store_.record_count, 1);
}

TEST_F(AdmissionLeadTest, RestoredEpochsAreStated) {
  state_.admitted[1] = Epoch{101};
  Announce(4, 7);
  EXPECT_EQ(peers_.Accept(103).epoch(), 101u);
  EXPECT_EQ(peers_.Accept(102).epoch(), 0u);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->message(), LostState(ServerId{1}, Epoch{101}, Epoch{103}).message());
}

TEST_F(AdmissionLeadTest, OnlyServersThatDidNotReplyAreAskedAgain) {
  Announce(4, 1);
  peers_.Accept(101);
  admission_.Tick(At(1));
  EXPECT_EQ(peers_.call_count(), 1u);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(peers_.call_count(), 0u);
  admission_.Tick(At(2));
  EXPECT_EQ(peers_.Accept(102).server(), 2u);
  EXPECT_EQ(result_, absl::OkStatus());
}

TEST_F(AdmissionLeadTest, AnUnreachableServerIsNamed) {
  Announce(4, 1);
  peers_.Accept(101);
  peers_.Answer(absl::UnavailableError("refused"));
  admission_.Tick(At(6));
  EXPECT_EQ(result_, absl::UnavailableError("server 0 cannot reach server 2 (there): refused"));
  Announce(4, 2);
  peers_.Accept(101);
  admission_.Tick(At(6));
  EXPECT_EQ(result_, absl::UnavailableError("server 0 cannot reach server 2 (there): no reply"));
  peers_.Accept(102);  // too late; ignored
}

TEST_F(AdmissionLeadTest, ARefusalEndsTheAnnouncement) {
  Announce(4, 1);
  peers_.Answer(absl::FailedPreconditionError("another run"));
  EXPECT_EQ(result_, absl::FailedPreconditionError("server 1 (there): another run"));
  peers_.Accept(102);  // ignored
}

// Both processes join before the run has begun, and server 1 is restarted in between.
TEST_F(AdmissionLeadTest, AServerWithAnotherEpochLostItsState) {
  Announce(4, 1);
  Announce(5, 1);
  peers_.Accept(101);
  peers_.Accept(102);
  EXPECT_EQ(result_, absl::OkStatus());
  result_.reset();
  peers_.Accept(103);
  peers_.Accept(102);
  EXPECT_EQ(result_, LostState(ServerId{1}, Epoch{101}, Epoch{103}));
}

TEST_F(AdmissionLeadTest, AJobWithOneServerAsksNobody) {
  JobState one_server = StateOf(1);
  AdmissionLead alone(one_server, tokens_, nullptr, store_, control_);
  std::optional<absl::Status> result;
  alone.Announce(WorkerId{0}, Incarnation{1}, At(0),
                 [&result](const absl::Status& status) { result = status; });
  EXPECT_EQ(result, absl::OkStatus());
}

}  // namespace
}  // namespace thinwire
