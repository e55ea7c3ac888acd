#include "client/encode/residual_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

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
            absl::StrCat(path_,
                         ": belongs to another model, shard_size or number of servers (expected "
                         "partition ",
                         other.hash(), ", got ", partition_.hash(),
                         "): remove the file if the values that this worker has not sent may be "
                         "lost"));
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

TEST_F(ResidualFileTest, TheHeadCanBeReadAlone) {
  Write();
  const absl::StatusOr<ResidualPoint> point = ReadResidualPoint(path_, kOwner, partition_);
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(point->run, RunId{7});
  EXPECT_EQ(point->step, Step{41});
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ReadResidualPoint(path_, {.job = "other", .worker = WorkerId{3}}, partition_).status()));
}

TEST_F(ResidualFileTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadResiduals(path_, kOwner, partition_).status()));
}

class ResidualStartTest : public ::testing::Test {
 protected:
  // Returns the replies to Join of two servers, each with one shard.
  static std::vector<JoinReply> Replies(uint64_t next, uint64_t other_next) {
    std::vector<JoinReply> replies(2);
    for (JoinReply& reply : replies) reply.set_run(7);
    ShardState& first = *replies[0].add_shards();
    first.set_shard(0);
    first.set_predecessor_next(next);
    ShardState& second = *replies[1].add_shards();
    second.set_shard(1);
    second.set_predecessor_next(other_next);
    return replies;
  }
  // Returns saved files of these steps.
  static std::vector<SavedPoint> Files(const std::vector<uint64_t>& steps) {
    std::vector<SavedPoint> files;
    for (const uint64_t step : steps) {
      files.push_back(
          {.path = absl::StrCat("d/residuals-", step), .point = {RunId{7}, Step{step}}});
    }
    return files;
  }
  ResidualStart Decide(const std::vector<SavedPoint>& files, const std::vector<JoinReply>& replies,
                       bool after_rollback = false) const {
    return DecideResidualStart("d", files, replies, partition_, after_rollback);
  }

  const std::vector<bool> all_ = {true, true};
  const std::vector<bool> none_ = {false, false};
  const std::string lost_ = "; the residuals that an earlier process of this worker left are lost";
  const Partition partition_ = *Partition::Make({{"b", {2}}, {"w", {2, 2}}}, 4096, 1);
};

TEST_F(ResidualStartTest, AProcessWithoutAFolderReportsOnlyALoss) {
  EXPECT_EQ(DecideResidualStart("", {}, Replies(0, 0), partition_, false).text, "");
  EXPECT_EQ(DecideResidualStart("", {}, Replies(0, 7), partition_, false).text,
            "no state folder" + lost_);
  EXPECT_EQ(DecideResidualStart("", {}, Replies(0, 7), partition_, true).text, "");
}

TEST_F(ResidualStartTest, AnEmptyFolderIsReported) {
  EXPECT_EQ(Decide({}, Replies(0, 0)).text, "d: no file yet");
  EXPECT_EQ(Decide({}, Replies(7, 7)).text, "d: no file yet" + lost_);
  EXPECT_EQ(Decide({}, Replies(7, 7)).path, "");
  EXPECT_EQ(Decide({}, Replies(7, 7)).restored, none_);
}

TEST_F(ResidualStartTest, TheFileOfTheWorkersNextStepIsRestored) {
  const ResidualStart start = Decide(Files({40, 41, 60}), Replies(41, 41));
  EXPECT_EQ(start.path, "d/residuals-41");
  EXPECT_EQ(start.restored, all_);
  EXPECT_EQ(start.text, "d/residuals-41: saved before step 41, restored");
}

// The worker was killed in the middle of a step.
TEST_F(ResidualStartTest, ShardsThatWerePushedSinceAreNotRestored) {
  const ResidualStart start = Decide(Files({40, 41}), Replies(41, 42));
  EXPECT_EQ(start.restored, (std::vector<bool>{true, false}));
  EXPECT_EQ(start.text,
            "d/residuals-41: saved before step 41, restored for 1 of 2 shards: the worker has "
            "pushed the others since");
}

// Pushes after the save sent a part of the saved residuals. Restoring the file would send this part
// twice.
TEST_F(ResidualStartTest, AFileOlderThanTheLastPushIsNotRestored) {
  const ResidualStart start = Decide(Files({40, 41}), Replies(43, 42));
  EXPECT_EQ(start.path, "d/residuals-41") << "it says which residuals are lost";
  EXPECT_EQ(start.restored, none_);
  EXPECT_EQ(start.text,
            "d/residuals-41: saved before step 41, not restored: the worker has pushed up to step "
            "43 since" +
                lost_);
}

TEST_F(ResidualStartTest, AFileWhosePushesTheServersHaveLostIsNotRestored) {
  const ResidualStart start = Decide(Files({41}), Replies(30, 30), /*after_rollback=*/true);
  EXPECT_EQ(start.restored, none_);
  EXPECT_EQ(start.text,
            "d/residuals-41: saved before step 41, not restored: the servers know the worker's "
            "pushes before step 30");
}

// The steps match, as they may if another run has progressed as far.
TEST_F(ResidualStartTest, AFileOfAnotherRunIsNotRestored) {
  std::vector<SavedPoint> files = Files({41});
  files[0].point.run = RunId{8};
  const ResidualStart start = Decide(files, Replies(41, 41));
  EXPECT_EQ(start.path, "");
  EXPECT_EQ(start.restored, none_);
  EXPECT_EQ(start.text,
            "d/residuals-41: saved before step 41, not restored: from another run (expected run "
            "0000000000000007, got 0000000000000008)" +
                lost_);
}

}  // namespace
}  // namespace thinwire::client
