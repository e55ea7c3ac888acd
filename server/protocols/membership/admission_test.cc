#include "server/protocols/membership/admission.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/inline_executor.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Stores all calls until the test answers them.
class HeldPeers final : public Peers {
 public:
  struct Call {
    AdmitRequest request;
    AdmitDone done;
  };

  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (there)");
  }
  void Admit(ServerId, const AdmitRequest& request, AdmitDone done) override {
    calls_.push_back({request, std::move(done)});
  }
  void SetMode(ServerId, const SetModeRequest&, SetModeDone done) override {
    done(absl::UnimplementedError("not used"));
  }
  void Follow(ServerId, const FollowRequest&, FollowDone) override { ADD_FAILURE(); }
  void Rollback(ServerId, const RollbackRequest&, RollbackDone) override { ADD_FAILURE(); }
  void SaveCheckpoint(ServerId, const SaveCheckpointRequest&, SaveDone) override { ADD_FAILURE(); }
  void Clip(ServerId, const ClipRequest&, ClipDone) override { ADD_FAILURE(); }
  size_t call_count() const { return calls_.size(); }
  // Answers the oldest call and returns its request.
  AdmitRequest Answer(const absl::StatusOr<AdmitReply>& reply) {
    Call call = std::move(calls_.front());
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
  std::deque<Call> calls_;
};

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

AdmitRequest Common() {
  AdmitRequest request;
  request.set_job("train");
  request.set_run(9);
  return request;
}

class AdmissionTest : public testing::Test {
 protected:
  void Announce(uint32_t worker, uint64_t incarnation) {
    result_.reset();
    admission_.Announce(WorkerId{worker}, Incarnation{incarnation}, At(0),
                        [this](const absl::Status& status) { result_ = status; });
  }

  HeldPeers peers_;
  int record_count_ = 0;
  InlineExecutor control_;
  Admission admission_{Common(), 3, &peers_, control_, [this] { ++record_count_; }};
  std::optional<absl::Status> result_;
};

TEST_F(AdmissionTest, AProcessIsAdmittedWhenEveryServerHasAgreed) {
  Announce(4, 7);
  const AdmitRequest first = peers_.Accept(101);
  EXPECT_EQ(first.job(), "train");
  EXPECT_EQ(first.run(), 9u);
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

TEST_F(AdmissionTest, TheEpochsAreRecordedBeforeAProcessIsAdmittedAndAfterEveryChange) {
  Announce(4, 7);
  peers_.Accept(101);
  EXPECT_EQ(record_count_, 0);
  peers_.Accept(102);
  EXPECT_EQ(record_count_, 1);
  EXPECT_EQ(admission_.epochs(), (std::vector<Epoch>{Epoch{}, Epoch{101}, Epoch{102}}));
  Announce(5, 1);
  peers_.Accept(101);
  peers_.Accept(102);
  EXPECT_EQ(record_count_, 1);
}

TEST_F(AdmissionTest, RestoredEpochsAreStated) {
  admission_.Restore({Epoch{}, Epoch{101}});
  Announce(4, 7);
  EXPECT_EQ(peers_.Accept(103).epoch(), 101u);
  EXPECT_EQ(peers_.Accept(102).epoch(), 0u);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->message(), LostState(ServerId{1}, Epoch{101}, Epoch{103}).message());
  admission_.Restore(std::vector<Epoch>(9, Epoch{7}));
  EXPECT_EQ(admission_.epochs().size(), 3u);
}

TEST_F(AdmissionTest, OnlyServersThatDidNotReplyAreAskedAgain) {
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

TEST_F(AdmissionTest, AnUnreachableServerIsNamed) {
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

TEST_F(AdmissionTest, ARefusalEndsTheAnnouncement) {
  Announce(4, 1);
  peers_.Answer(absl::FailedPreconditionError("another run"));
  EXPECT_EQ(result_, absl::FailedPreconditionError("server 1 (there): another run"));
  peers_.Accept(102);  // ignored
}

// Both processes join before the run has begun, and server 1 is restarted in between.
TEST_F(AdmissionTest, AServerWithAnotherEpochLostItsState) {
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

TEST_F(AdmissionTest, AJobWithOneServerAsksNobody) {
  Admission alone(Common(), 1, nullptr, control_, nullptr);
  std::optional<absl::Status> result;
  alone.Announce(WorkerId{0}, Incarnation{1}, At(0),
                 [&result](const absl::Status& status) { result = status; });
  EXPECT_EQ(result, absl::OkStatus());
}

}  // namespace
}  // namespace thinwire
