#include "server/edge/lead/scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the calls of Scale until the test answers them.
class WaitingPeers final : public Peers {
 public:
  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (there)");
  }
  void Admit(ServerId, const AdmitRequest&, AdmitDone done) override {
    done(absl::UnimplementedError("not used"));
  }
  void Follow(ServerId, const FollowRequest&, FollowDone) override { ADD_FAILURE(); }
  void Rollback(ServerId, const RollbackRequest&, RollbackDone) override { ADD_FAILURE(); }
  void Scale(ServerId, const ScaleRequest& request, ScaleDone done) override {
    asked_.push_back(request.workers());
    calls_.push_back(std::move(done));
  }
  void Answer(const absl::Status& status) {
    const ScaleDone done = std::move(calls_.front());
    calls_.pop_front();
    if (status.ok()) return done(ScaleReply());
    done(status);
  }
  const std::vector<uint32_t>& asked() const { return asked_; }

 private:
  std::vector<uint32_t> asked_;
  std::deque<ScaleDone> calls_;
};

Rule WithMost(Rule rule, uint32_t max_workers) {
  rule.max_workers = max_workers;
  return rule;
}

class ScalerTest : public testing::Test {
 protected:
  Scaler Make(const Rule& rule, uint32_t server_count = 1) {
    return Scaler("train", rule, server_count, &peers_,
                  [](const std::function<void()>& work) { work(); },
                  {.reserve =
                       [this](uint32_t workers) {
                         if (workers > room_) return absl::InvalidArgumentError("no room");
                         reserved_ = workers;
                         return absl::OkStatus();
                       },
                   .apply = [this](const Rule& applied) { applied_.push_back(applied); },
                   .record =
                       [this](const std::function<void()>& then) {
                         ++record_count_;
                         then();
                       }});
  }
  void Scale(Scaler& scaler, uint32_t workers) {
    reply_.reset();
    scaler.Scale(workers, [this](absl::StatusOr<ScaleReply> reply) { reply_ = std::move(reply); });
  }

  WaitingPeers peers_;
  uint32_t room_ = 100;  // the number of workers whose connections fit
  uint32_t reserved_ = 0;
  int record_count_ = 0;
  std::vector<Rule> applied_;
  std::optional<absl::StatusOr<ScaleReply>> reply_;
};

TEST_F(ScalerTest, MoreWorkersGetTheNewRuleFirst) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(scaler, 4);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4));
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_FALSE(reply_.has_value());
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(scaler.target(), 4u);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ((*reply_)->workers(), 2u);
}

TEST_F(ScalerTest, FewerWorkersLeaveFirst) {
  Scaler scaler = Make(WithMost(Rule::Backup(4, 1), 8));
  Scale(scaler, 3);
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ(scaler.target(), 3u);
  EXPECT_EQ(scaler.reduction(), 3u);
  EXPECT_EQ(record_count_, 1);
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_THAT(applied_, IsEmpty());
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Backup(3, 1), 8)));
  EXPECT_EQ(reserved_, 3u);
  EXPECT_EQ(scaler.reduction(), 0u);
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(ScalerTest, AnUnreachableServerIsNamedAndNothingChanges) {
  Scaler scaler = Make(WithMost(Rule::Async(2), 8), 2);
  Scale(scaler, 3);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(reply_->status(), absl::UnavailableError("server 1 (there): refused"));
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, ANumberOutOfRangeIsRefused) {
  Scaler sync = Make(WithMost(Rule::Sync(2), 8));
  Scale(sync, 9);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 1 to 8, the value of max_workers, got 9)"));
  Scale(sync, 0);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kInvalidArgument);
  Scaler backup = Make(WithMost(Rule::Backup(4, 2), 8));
  Scale(backup, 2);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 3 to 8, the value of max_workers, got 2)"));
}

TEST_F(ScalerTest, AnotherServerFollowsTheLead) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  const auto ignore = [](const absl::StatusOr<ScaleReply>&) {};
  scaler.Follow(4, ignore);
  scaler.Follow(4, ignore);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
  EXPECT_EQ(scaler.target(), 4u);
}

TEST_F(ScalerTest, MoreWorkersThanFitIntoTheMemoryAreRefused) {
  room_ = 3;
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 2);
  Scale(scaler, 4);
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(peers_.asked(), IsEmpty());
  scaler.Follow(4, [this](absl::StatusOr<ScaleReply> reply) { reply_ = std::move(reply); });
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(applied_, IsEmpty());
  EXPECT_EQ(scaler.target(), 2u);
}

TEST_F(ScalerTest, AfterARefusalOfOneServerTheOthersGetTheEarlierNumberAgain) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(scaler, 4);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::InvalidArgumentError("no room"));
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("server 2 (there): no room"));
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2));
  EXPECT_EQ(reserved_, 2u);
  Scale(scaler, 5);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kUnavailable);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(applied_, IsEmpty());
  Scale(scaler, 3);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2, 3, 3));
}

TEST_F(ScalerTest, ARestoredReductionIsCompleted) {
  Scaler scaler = Make(WithMost(Rule::Sync(4), 8));
  scaler.RestoreReduction(2);
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_EQ(scaler.reduction(), 2u);
  scaler.RestoreReduction(0);
  EXPECT_EQ(scaler.target(), 4u);
  scaler.RestoreReduction(2);
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(2), 8)));
  EXPECT_TRUE(scaler.ReserveRestored().ok());
  EXPECT_EQ(reserved_, 2u);
}

TEST_F(ScalerTest, ARestoredRuleStays) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  scaler.Restore(WithMost(Rule::Sync(5), 8));
  EXPECT_EQ(scaler.target(), 5u);
  scaler.Tick(true);
  EXPECT_THAT(applied_, IsEmpty());
}

}  // namespace
}  // namespace thinwire
