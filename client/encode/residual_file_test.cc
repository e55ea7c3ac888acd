#include "client/encode/residual_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

const ResidualOwner kOwner = {.job = "train", .worker = WorkerId{3}};

class ResidualFileTest : public ::testing::Test {
 protected:
  // Writes a file in which shard 0 has a residual and a momentum, and shard 1 only a momentum.
  void Write(const ResidualOwner& owner = kOwner) {
    const std::vector<ShardResidualsView> shards = {
        {.residual = residual_, .momentum = momentum_, .late_examples = 64},
        {.residual = {}, .momentum = vector_momentum_}};
    const absl::Status status =
        WriteResiduals(path_, owner, partition_, {RunId{7}, Step{41}}, shards);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::string ErrorOf(const ResidualOwner& owner, const Partition& partition) {
    return std::string(ReadResiduals(path_, owner, partition).status().message());
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const Partition partition_ = *Partition::Make({{"b", {2}}, {"w", {2, 2}}}, 4096, 1);
  Floats residual_ = {1, -2, 3, 0.5};
  Floats momentum_ = {0, 4, 5, 6};
  Floats vector_momentum_ = {7, 8};
};

TEST_F(ResidualFileTest, AWrittenFileCanBeRead) {
  Write();
  const absl::StatusOr<SavedResiduals> saved = ReadResiduals(path_, kOwner, partition_);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->point.run, RunId{7});
  EXPECT_EQ(saved->point.step, Step{41});
  ASSERT_EQ(saved->shards.size(), 2u);
  EXPECT_EQ(saved->shards[0].residual, residual_);
  EXPECT_EQ(saved->shards[0].momentum, momentum_);
  EXPECT_EQ(saved->shards[0].late_examples, 64u);
  EXPECT_EQ(saved->shards[1].residual, Floats());
  EXPECT_EQ(saved->shards[1].momentum, vector_momentum_);
  EXPECT_EQ(saved->shards[1].late_examples, 0u);
}

TEST_F(ResidualFileTest, AFileOfAnotherJobWorkerOrPartitionIsRefused) {
  Write();
  EXPECT_EQ(ErrorOf({.job = "other", .worker = WorkerId{3}}, partition_),
            path_ + ": not this worker's file (expected job \"other\", got \"train\")");
  EXPECT_EQ(ErrorOf({.job = "longer", .worker = WorkerId{3}}, partition_),
            path_ + ": not this worker's file (expected job name of length 6, got 5)");
  EXPECT_EQ(ErrorOf({.job = "train", .worker = WorkerId{4}}, partition_),
            path_ + ": not this worker's file (expected worker 4, got 3)");
  const Partition other = *Partition::Make({{"b", {2}}, {"w", {4, 2}}}, 4096, 1);
  EXPECT_EQ(ErrorOf(kOwner, other),
            absl::StrCat(path_, ": not this worker's file (expected partition ", other.hash(),
                         ", got ", partition_.hash(), ")"));
}

TEST_F(ResidualFileTest, EveryFlippedBitAndEveryTruncationIsDetected) {
  Write();
  std::ifstream in(path_, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto refuses = [&](const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return !ReadResiduals(path_, kOwner, partition_).ok();
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

TEST_F(ResidualFileTest, AValueThatIsNotFiniteIsRefused) {
  momentum_[2] = std::numeric_limits<float>::infinity();
  Write();
  EXPECT_EQ(ErrorOf(kOwner, partition_), path_ + ": shard 0: a value is not finite");
}

TEST_F(ResidualFileTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadResiduals(path_, kOwner, partition_).status()));
}

constexpr ResidualPoint kSaved = {RunId{7}, Step{41}};

// Returns the replies to Join of two servers, each with one shard.
std::vector<JoinReply> Replies(uint64_t predecessor_next, uint64_t other_next) {
  std::vector<JoinReply> replies(2);
  for (JoinReply& reply : replies) reply.set_run(7);
  replies[0].add_shards()->set_predecessor_next(predecessor_next);
  replies[1].add_shards()->set_predecessor_next(other_next);
  return replies;
}

TEST(ResidualStartTest, AFirstProcessWithoutAFileReportsNothing) {
  const ResidualStart start = DecideResidualStart("", std::nullopt, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text, "");
}

TEST(ResidualStartTest, ALaterProcessWithoutAFileReportsTheLoss) {
  EXPECT_EQ(DecideResidualStart("", std::nullopt, Replies(0, 7), Step{9}).text,
            "no residual file; the residuals that an earlier process of this worker left are lost");
  EXPECT_EQ(DecideResidualStart("r", std::nullopt, Replies(7, 7), Step{9}).text,
            "r: no file yet; the residuals that an earlier process of this worker left are lost");
}

TEST(ResidualStartTest, AMissingFileIsReported) {
  const ResidualStart start = DecideResidualStart("r", std::nullopt, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text, "r: no file yet");
}

TEST(ResidualStartTest, ResidualsAreRestoredHoweverFarTheOtherWorkersAre) {
  for (const uint64_t first : {41, 60}) {
    const ResidualStart start = DecideResidualStart("r", kSaved, Replies(41, 40), Step{first});
    EXPECT_TRUE(start.restore);
    EXPECT_EQ(start.text, "r: saved before step 41, restored");
  }
}

// Pushes after the save sent a part of the saved residuals. Restoring the file would send this part
// twice.
TEST(ResidualStartTest, AFileOlderThanTheLastPushIsNotRestored) {
  const ResidualStart start = DecideResidualStart("r", kSaved, Replies(41, 42), Step{60});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text,
            "r: saved before step 41, not restored: the worker has pushed up to step 42 since; the "
            "residuals that an earlier process of this worker left are lost");
}

// The steps match, as they may if another run has progressed as far.
TEST(ResidualStartTest, AFileOfAnotherRunIsNotRestored) {
  const ResidualStart start =
      DecideResidualStart("r", ResidualPoint{RunId{8}, Step{41}}, Replies(41, 40), Step{60});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text,
            "r: saved before step 41, not restored: from another run (expected run "
            "0000000000000007, got 0000000000000008); the residuals that an earlier process of "
            "this worker left are lost");
}

TEST(ResidualStartTest, AFileOfALaterStepIsNotRestored) {
  const ResidualStart start = DecideResidualStart("r", kSaved, Replies(0, 0), Step{0});
  EXPECT_FALSE(start.restore);
  EXPECT_EQ(start.text, "r: saved before step 41, not restored: the job is at an earlier step (0)");
}

}  // namespace
}  // namespace thinwire::client
