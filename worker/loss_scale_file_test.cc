#include "worker/loss_scale_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class LossScaleFileTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::ifstream in(place_.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Put(const std::string& content) const {
    std::ofstream(place_.path, std::ios::binary) << content;
  }

  const LossScalePlace place_ = {
      .path = ::testing::TempDir() + "/" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name(),
      .job = "train",
      .worker = WorkerId{3}};
  const LossScale::State state_ = {.value = 0x1p13f, .good_steps = 1234};
};

TEST_F(LossScaleFileTest, WhatWasWrittenIsRead) {
  ASSERT_TRUE(WriteLossScale(place_, {}).ok());
  ASSERT_TRUE(WriteLossScale(place_, state_).ok());
  EXPECT_EQ(ReadLossScale(place_).value(), state_);
}

TEST_F(LossScaleFileTest, NoFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadLossScale(place_).status()));
}

TEST_F(LossScaleFileTest, AnothersFileIsRefused) {
  ASSERT_TRUE(WriteLossScale(place_, state_).ok());
  for (const LossScalePlace& other : {LossScalePlace{place_.path, "train", WorkerId{2}},
                                      LossScalePlace{place_.path, "brain", WorkerId{3}}}) {
    const absl::Status status = ReadLossScale(other).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want the loss scale of worker"));
  }
}

TEST_F(LossScaleFileTest, ADamagedFileIsDataLossWhereverItIsDamaged) {
  ASSERT_TRUE(WriteLossScale(place_, state_).ok());
  const std::string good = Content();
  // Behind the head, which says whose it is.
  for (size_t i = 8 + 4 + 5 + 4; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x20;
    Put(bad);
    EXPECT_TRUE(absl::IsDataLoss(ReadLossScale(place_).status())) << i;
  }
  for (size_t length = 0; length < good.size(); ++length) {
    Put(good.substr(0, length));
    EXPECT_TRUE(absl::IsDataLoss(ReadLossScale(place_).status())) << length;
  }
}

TEST_F(LossScaleFileTest, OnlyAPowerOfTwoFromOneOnIsALossScale) {
  for (const float value : {0.0f, 0.5f, 3.0f, -4.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    ASSERT_TRUE(WriteLossScale(place_, {.value = value}).ok());
    const absl::Status status = ReadLossScale(place_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << value << " " << status;
  }
}

}  // namespace
}  // namespace thinwire
