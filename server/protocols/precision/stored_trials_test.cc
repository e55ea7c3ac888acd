#include "server/protocols/precision/stored_trials.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"
#include "proto/control.pb.h"
#include "server/durable/testing/faulty_files.h"
#include "server/protocols/state/dealer.h"

namespace thinwire {
namespace {

constexpr RunId kRun{7};

class StoredTrialsTest : public testing::Test {
 protected:
  StoredTrialsTest() {
    EXPECT_TRUE(files_.MakeFolder("/state").ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
  }
  // Makes the object anew, as a server that begins or goes back does.
  absl::Status Start(RunId run, bool recovered) {
    AdaptiveSpec spec{.speculate_steps = 8, .continue_steps = 10};
    spec.arms = {{.codec = {.id = CodecId::kFp32}}, {.codec = {.id = CodecId::kOneBit}}};
    trials_ = std::make_unique<StoredTrials>(spec, files_, "/state", dealer_);
    trials_->Begin(*Partition::Make({{"w", {2, 2}}}, 4096, 1));
    return trials_->Start(run, recovered);
  }
  // Sends the tests of a trial from BEGIN on, after which the accuracy is END.
  absl::Status Try(uint64_t begin, double end) {
    HeartbeatRequest request;
    for (uint64_t i = 0; i <= 8; ++i) {
      PrecisionTest& test = *request.add_tests();
      test.set_step(begin + i);
      test.set_accuracy(0.1 + (end - 0.1) * static_cast<double>(i) / 8);
      test.set_seconds_per_step(1);
      test.set_end(100);
    }
    return trials_->Add(request);
  }
  JoinReply Joined() {
    JoinReply reply;
    trials_->FillIn(reply);
    return reply;
  }
  uint64_t DealtUntil() {
    HeartbeatReply reply;
    dealer_.Advance(Step{50}, absl::UnixEpoch());
    dealer_.FillIn(0, reply);
    return reply.dealt_until();
  }

  FaultyFiles files_;
  Dealer dealer_{2, absl::Seconds(10)};
  std::unique_ptr<StoredTrials> trials_;
};

TEST_F(StoredTrialsTest, AReturnWaitsForTheSnapshotAndTheNextProcessContinues) {
  ASSERT_TRUE(Start(kRun, /*recovered=*/false).ok());
  EXPECT_EQ(Joined().push_candidates(0), 0u);
  EXPECT_EQ(Joined().trial_step(), 0u);
  EXPECT_EQ(DealtUntil(), 8u);
  ASSERT_TRUE(Try(0, 0.8).ok());
  EXPECT_EQ(*trials_->Update(Step{8}, std::nullopt, std::nullopt), std::nullopt);
  EXPECT_EQ(*trials_->Update(Step{8}, Step{0}, std::nullopt), Step{0});
  EXPECT_EQ(DealtUntil(), 8u) << "no worker begins the next step";

  files_.Crash();
  files_.Restart();
  ASSERT_TRUE(Start(kRun, /*recovered=*/true).ok());
  EXPECT_EQ(Joined().push_candidates(0), 1u);
  ASSERT_TRUE(Try(0, 0.1).ok());
  StatusReply status;
  trials_->FillIn(status);
  ASSERT_EQ(status.precision_decisions_size(), 1);
  EXPECT_EQ(status.precision_decisions(0).chosen(), "fp32");
  EXPECT_EQ(*trials_->Update(Step{8}, Step{0}, std::nullopt), Step{0});

  ASSERT_TRUE(Start(kRun, /*recovered=*/true).ok());
  EXPECT_FALSE(Joined().has_trial_step());
  EXPECT_EQ(Joined().push_candidates(0), 0u);
  EXPECT_EQ(trials_->snapshot(), Step{18});
  EXPECT_EQ(DealtUntil(), 18u) << "the snapshot is not announced yet";
  EXPECT_EQ(*trials_->Update(Step{8}, Step{0}, Step{18}), std::nullopt);
  EXPECT_EQ(DealtUntil(), 19u);
  EXPECT_TRUE(trials_->MaySave(Step{18}));
  EXPECT_FALSE(trials_->MaySave(Step{19}));
  EXPECT_EQ(*trials_->Update(Step{19}, Step{0}, Step{18}), std::nullopt);
  EXPECT_EQ(*trials_->Update(Step{19}, Step{18}, Step{18}), Step{18});
}

TEST_F(StoredTrialsTest, TestsAfterATrialAreIgnored) {
  ASSERT_TRUE(Start(kRun, /*recovered=*/false).ok());
  ASSERT_TRUE(Try(0, 0.8).ok());
  ASSERT_TRUE(Try(0, 0.8).ok()) << "the worker sends its tests until it joins again";
  ASSERT_TRUE(Start(kRun, /*recovered=*/true).ok());
  StatusReply status;
  trials_->FillIn(status);
  EXPECT_EQ(status.precision_decisions_size(), 0);
  EXPECT_EQ(Joined().push_candidates(0), 1u);
  EXPECT_FALSE(trials_->MaySave(Step{0})) << "a trial is repeated";
}

TEST_F(StoredTrialsTest, AFileThatIsMissingOrOfAnotherRunIsAnError) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Start(kRun, /*recovered=*/true)));
  ASSERT_TRUE(Start(kRun, /*recovered=*/false).ok());
  EXPECT_TRUE(absl::IsDataLoss(Start(RunId{8}, /*recovered=*/true)));
  EXPECT_TRUE(Start(RunId{8}, /*recovered=*/false).ok()) << "a new run";
  EXPECT_TRUE(Start(RunId{8}, /*recovered=*/true).ok());
}

}  // namespace
}  // namespace thinwire
