#include "worker/trainer/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(LossScaleTest, ItHalvesAtEveryOverflowDownToOne) {
  LossScale scale({.first = 4});
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 2);
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 1);
  scale.Overflowed();
  EXPECT_EQ(scale.value(), 1);
  EXPECT_EQ(scale.overflow_count(), 3u);
}

TEST(LossScaleTest, ItDoublesAfterAnIntervalOfGoodStepsUpToTheLargest) {
  LossScale scale({.first = 1, .interval = 3, .largest = 4});
  for (const float want : {1, 1, 2, 2, 2, 4, 4, 4, 4}) {
    scale.Good();
    EXPECT_EQ(scale.value(), want);
  }
}

TEST(LossScaleTest, AnOverflowRestartsTheInterval) {
  LossScale scale({.first = 8, .interval = 3});
  scale.Good();
  scale.Good();
  scale.Overflowed();
  EXPECT_EQ(scale.state(), (LossScale::State{.value = 4, .good_steps = 0}));
  scale.Good();
  scale.Good();
  EXPECT_EQ(scale.value(), 4);
  scale.Good();
  EXPECT_EQ(scale.value(), 8);
}

TEST(LossScaleTest, TheNextProcessContinuesFromTheState) {
  LossScale scale({.first = 8, .interval = 3});
  scale.Overflowed();
  scale.Good();
  scale.Good();
  LossScale next({.first = 65536, .interval = 3});
  next.Restore(scale.state());
  EXPECT_EQ(next.value(), 4);
  EXPECT_EQ(next.overflow_count(), 0u) << "the count is per process";
  next.Good();
  EXPECT_EQ(next.value(), 8);
}

TEST(LossScaleTest, ARestoredScaleIsLimitedToTheLargest) {
  LossScale scale({.first = 8, .interval = 3, .largest = 16});
  scale.Restore({.value = 1024, .good_steps = 7});
  EXPECT_EQ(scale.value(), 16);
  scale.Good();
  EXPECT_EQ(scale.state(), (LossScale::State{.value = 16, .good_steps = 0}));
}

class LossScaleFileTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::ifstream in(file_.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Put(const std::string& content) const {
    std::ofstream(file_.path, std::ios::binary) << content;
  }

  const LossScaleFile file_ = {
      .path = ::testing::TempDir() + "/" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name(),
      .job = "train",
      .worker = WorkerId{3}};
  const LossScale::State state_ = {.value = 0x1p13f, .good_steps = 1234};
};

TEST_F(LossScaleFileTest, ReadingReturnsTheWrittenState) {
  ASSERT_TRUE(WriteLossScale(file_, {}).ok());
  ASSERT_TRUE(WriteLossScale(file_, state_).ok());
  EXPECT_EQ(ReadLossScale(file_).value(), state_);
}

TEST_F(LossScaleFileTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadLossScale(file_).status()));
}

TEST_F(LossScaleFileTest, TheFileOfAnotherWorkerOrJobIsRefused) {
  ASSERT_TRUE(WriteLossScale(file_, state_).ok());
  for (const LossScaleFile& other : {LossScaleFile{file_.path, "train", WorkerId{2}},
                                     LossScaleFile{file_.path, "brain", WorkerId{3}}}) {
    const absl::Status status = ReadLossScale(other).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not the loss scale of worker"));
  }
}

TEST_F(LossScaleFileTest, DamageAnywhereIsDataLoss) {
  ASSERT_TRUE(WriteLossScale(file_, state_).ok());
  const std::string good = Content();
  // The loop starts after the file's header. A damaged header names another worker or job, which is
  // a different error than DataLoss.
  for (size_t i = 8 + 4 + 5 + 4; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x20;
    Put(bad);
    EXPECT_TRUE(absl::IsDataLoss(ReadLossScale(file_).status())) << i;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    Put(good.substr(0, length));
    EXPECT_TRUE(absl::IsDataLoss(ReadLossScale(file_).status())) << length;
  }
}

TEST_F(LossScaleFileTest, AScaleMustBeAPowerOfTwoOfAtLeastOne) {
  for (const float value : {0.0f, 0.5f, 3.0f, -4.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    ASSERT_TRUE(WriteLossScale(file_, {.value = value}).ok());
    const absl::Status status = ReadLossScale(file_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << value << " " << status;
  }
}

}  // namespace
}  // namespace thinwire
