#include "worker/trainer/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class TrainerStateTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const TrainerStateFile& file, const TrainerState& expected) const {
    return std::string(ReadTrainerState(file, expected).status().message());
  }

  const TrainerStateFile file_ = {
      .path =
          testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name(),
      .job = "train",
      .worker = WorkerId{3},
      .step = Step{40}};
  const TrainerState state_ = {.buffers = {{.name = "n.running_mean",
                                            .dtype = "F32",
                                            .shape = {2},
                                            .bytes = {1, 2, 3, 4, 5, 6, 7, 8}},
                                           {.name = "n.count",
                                            .dtype = "I64",
                                            .shape = {},
                                            .bytes = {9, 0, 0, 0, 0, 0, 0, 0}}},
                               .local = {.update_count = 24, .slots = {{1, -2, 3}, {4, 5, 6}}}};
  // The same names and sizes with other values, as a new process has them.
  const TrainerState fresh_ = {.buffers = {{.name = "n.running_mean",
                                            .dtype = "F32",
                                            .shape = {2},
                                            .bytes = std::vector<uint8_t>(8)},
                                           {.name = "n.count",
                                            .dtype = "I64",
                                            .shape = {},
                                            .bytes = std::vector<uint8_t>(8)}},
                               .local = {.update_count = 0, .slots = {{0, 0, 0}, {0, 0, 0}}}};
};

TEST_F(TrainerStateTest, AWrittenStateCanBeRead) {
  ASSERT_TRUE(WriteTrainerState(file_, state_).ok());
  const auto read = ReadTrainerState(file_, fresh_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, state_);
}

TEST_F(TrainerStateTest, TheParametersOfStreamingLocalStepsAreKept) {
  TrainerState state = state_, fresh = fresh_;
  fresh.streaming = {.x = {0, 0, 0}, .base = {0, 0, 0}};
  EXPECT_TRUE(WriteTrainerState(file_, state).ok());
  EXPECT_THAT(ErrorOf(file_, fresh), HasSubstr("expected 4 slots of the local optimizer"));
  for (const std::optional<Step> step : {std::optional<Step>(), std::optional(Step{40})}) {
    state.streaming = {.step = step, .x = {7, 8, 9}, .base = {-1, 0, 1}};
    ASSERT_TRUE(WriteTrainerState(file_, state).ok());
    const auto read = ReadTrainerState(file_, fresh);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, state);
  }
  EXPECT_THAT(ErrorOf(file_, fresh_), HasSubstr("expected 2 slots of the local optimizer"));
}

TEST_F(TrainerStateTest, AFileOfAnotherOwnerStepModelOrOptimizerIsRefused) {
  ASSERT_TRUE(WriteTrainerState(file_, state_).ok());
  TrainerStateFile other = file_;
  other.step = Step{41};
  EXPECT_THAT(ErrorOf(other, fresh_),
              HasSubstr("expected worker 3 of job \"train\" before step 41 with 2 buffers"));
  other = file_;
  other.job = "other";
  EXPECT_THAT(ErrorOf(other, fresh_), HasSubstr("of job \"other\""));
  TrainerState model = fresh_;
  model.buffers[1].dtype = "I32";
  EXPECT_THAT(ErrorOf(file_, model), HasSubstr("expected buffer n.count"));
  model = fresh_;
  model.local.slots.pop_back();
  EXPECT_THAT(ErrorOf(file_, model), HasSubstr("expected 1 slots of the local optimizer"));
  model = fresh_;
  for (auto& slot : model.local.slots) slot.push_back(0);
  EXPECT_THAT(ErrorOf(file_, model), HasSubstr("expected 4 values in a slot"));
}

TEST_F(TrainerStateTest, EveryFlippedBitAndEveryTruncationIsDetected) {
  ASSERT_TRUE(WriteTrainerState(file_, state_).ok());
  std::ifstream in(file_.path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto refuses = [&](const std::string& content) {
    std::ofstream(file_.path, std::ios::binary) << content;
    return !ReadTrainerState(file_, fresh_).ok();
  };
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(refuses(damaged)) << "bit " << bit;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(refuses(whole.substr(0, length))) << "length " << length;
  }
  EXPECT_FALSE(refuses(whole));
}

TEST_F(TrainerStateTest, AValueThatIsNotFiniteIsRefused) {
  TrainerState state = state_;
  state.local.slots[1][0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(WriteTrainerState(file_, state).ok());
  EXPECT_THAT(ErrorOf(file_, fresh_), HasSubstr("a value of a slot is not finite"));
}

TEST_F(TrainerStateTest, AMissingFileIsNotFound) {
  std::filesystem::remove(file_.path);
  EXPECT_TRUE(absl::IsNotFound(ReadTrainerState(file_, fresh_).status()));
}

}  // namespace
}  // namespace thinwire
