#include "server/durable/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/memory/array_bytes.h"
#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/durable/testing/faulty_files.h"
#include "server/durable/testing/random_server.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFolder[] = "state";
constexpr uint64_t kSeeds = 8;

std::string Name(uint64_t number) {
  return absl::StrCat("checkpoint-", absl::Dec(number, absl::kZeroPad20));
}

// Makes the folder of the state durable.
void MakeStateFolder(FaultyFiles& files) {
  ASSERT_TRUE(files.MakeFolder(kFolder).ok());
  ASSERT_TRUE(files.SyncFolder("").ok());
}

// A server whose shards change between checkpoints. Between checkpoints 2 and 3, few events happen.
struct Story {
  explicit Story(uint64_t seed) : server(seed, 2) {
    for (int i = 0; i < 5; ++i) checkpoints[i] = server.Next(i == 3 ? 2 : 40);
  }
  // Returns the number of shards with the same version in checkpoints 2 and 3.
  int unchanged_count() const {
    int count = 0;
    for (int i = 0; i < 2; ++i) {
      count += checkpoints[2].shards[i].state.store.version ==
                       checkpoints[3].shards[i].state.store.version
                   ? 1
                   : 0;
    }
    return count;
  }

  RandomServer server;
  Checkpoint checkpoints[5];
};

void ExpectNoTemporaryFiles(Files& files) {
  const std::vector<std::string> names = files.List(kFolder).value();
  for (const std::string& name : names) {
    EXPECT_FALSE(absl::EndsWith(name, ".tmp")) << name;
  }
}

TEST(CheckpointTest, EveryKindOfStateIsReadBackAndContinues) {
  int shard_count = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    FaultyFiles files(seed);
    MakeStateFolder(files);
    RandomServer server(seed, 3);
    const Checkpoint checkpoint = server.Next(60);
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint).ok());
    const absl::StatusOr<Checkpoint> read = ReadCheckpoint(files, kFolder);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, checkpoint) << "seed " << seed;
    for (size_t i = 0; i < read->shards.size(); ++i) {
      const auto shard = server.setting(i).Make();
      const absl::Status status = shard->Restore(read->shards[i].state);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(shard->Save(), checkpoint.shards[i].state);
      ++shard_count;
    }
  }
  EXPECT_EQ(shard_count, 300);
}

TEST(CheckpointTest, AFolderWithoutACheckpointIsNotFound) {
  FaultyFiles files;
  MakeStateFolder(files);
  const absl::Status status = ReadCheckpoint(files, kFolder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "state: no checkpoint");
}

// A crash at operation N of WriteCheckpoint, for every N, leaves the old or the new checkpoint.
TEST(CheckpointTest, Promise5ACrashAtEveryFileOperationLeavesTheOldOrTheNewCheckpoint) {
  int crash_count = 0, old_count = 0, new_count = 0, unchanged_count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Story story(seed);
    unchanged_count += story.unchanged_count();
    bool crashed = true;
    for (uint64_t operation = 1; crashed; ++operation) {
      FaultyFiles files(seed * 1000 + operation);
      MakeStateFolder(files);
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[i]).ok());
      }
      files.CrashAt(operation);
      const bool written = WriteCheckpoint(files, kFolder, story.checkpoints[3]).ok();
      crashed = files.crashed();
      EXPECT_NE(written, crashed);
      files.Restart();
      const absl::StatusOr<Checkpoint> read = ReadCheckpoint(files, kFolder);
      ASSERT_TRUE(read.ok()) << read.status() << " after operation " << operation;
      const bool is_new = *read == story.checkpoints[3];
      EXPECT_TRUE(is_new || (*read == story.checkpoints[2] && !written)) << operation;
      crash_count += crashed ? 1 : 0;
      ++(is_new ? new_count : old_count);
      // The server goes on.
      const absl::Status next = WriteCheckpoint(files, kFolder, story.checkpoints[4]);
      ASSERT_TRUE(next.ok()) << next;
      ExpectNoTemporaryFiles(files);
      EXPECT_LE(ListCheckpoints(files, kFolder)->size(),
                KeptCheckpoints().retention.newest_count + 1);
      files.Restart();
      EXPECT_EQ(ReadCheckpoint(files, kFolder).value(), story.checkpoints[4]);
    }
  }
  EXPECT_GT(unchanged_count, 2);
  EXPECT_LT(unchanged_count, static_cast<int>(kSeeds) * 2);
  EXPECT_GT(crash_count, static_cast<int>(kSeeds) * 20);
  EXPECT_GT(old_count, static_cast<int>(kSeeds) * 10);
  EXPECT_GT(new_count, static_cast<int>(kSeeds) * 2);
}

TEST(CheckpointTest, Promise5ACrashInTheFirstCheckpointLeavesNoneOrTheWholeOne) {
  int crash_count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Story story(seed);
    bool crashed = true;
    for (uint64_t operation = 1; crashed; ++operation) {
      FaultyFiles files(seed * 1000 + operation);
      MakeStateFolder(files);
      files.CrashAt(operation);
      (void)WriteCheckpoint(files, kFolder, story.checkpoints[0]);
      crashed = files.crashed();
      crash_count += crashed ? 1 : 0;
      files.Restart();
      const absl::StatusOr<Checkpoint> read = ReadCheckpoint(files, kFolder);
      if (crashed && absl::IsNotFound(read.status())) continue;
      ASSERT_TRUE(read.ok()) << read.status() << " after operation " << operation;
      EXPECT_EQ(*read, story.checkpoints[0]);
    }
  }
  EXPECT_GT(crash_count, static_cast<int>(kSeeds) * 10);
}

TEST(CheckpointTest, AFailedFlushGivesTheAttemptUpAndKeepsACompleteCheckpoint) {
  int failure_count = 0;
  const Story story(1);
  for (uint64_t flush = 1;; ++flush) {
    FaultyFiles files(flush);
    MakeStateFolder(files);
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[0]).ok());
    const uint64_t flushes_before = files.flushes();
    files.FailFlushAt(flush);
    const absl::Status status = WriteCheckpoint(files, kFolder, story.checkpoints[1]);
    if (files.flushes() - flushes_before < flush) {
      EXPECT_TRUE(status.ok()) << status;
      break;
    }
    ++failure_count;
    EXPECT_FALSE(status.ok()) << "flush " << flush;
    const Checkpoint visible = ReadCheckpoint(files, kFolder).value();
    EXPECT_TRUE(visible == story.checkpoints[0] || visible == story.checkpoints[1]);
    files.Restart();
    const Checkpoint durable = ReadCheckpoint(files, kFolder).value();
    EXPECT_TRUE(durable == story.checkpoints[0] || durable == story.checkpoints[1]);
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[2]).ok());
    EXPECT_EQ(ReadCheckpoint(files, kFolder).value(), story.checkpoints[2]);
    ExpectNoTemporaryFiles(files);
  }
  EXPECT_GE(failure_count, 6);
}

TEST(CheckpointTest, TheNewestCheckpointsAndTheFirstOfEachIntervalAreKept) {
  const auto checkpoint_of = [](uint64_t step, uint64_t generation) {
    Checkpoint checkpoint;
    checkpoint.run = {.run = RunId{7}, .generation = Generation{generation}, .join = JoinRequest()};
    // The frontiers of the two shards differ, as in mode async.
    for (uint32_t shard = 0; shard < 2; ++shard) {
      SavedShard& saved = checkpoint.shards.emplace_back();
      saved.shard = ShardId{shard};
      saved.state.frontier = Step{step + shard};
      saved.state.store.version = Version{step + shard};
      const std::vector<float> masters(4, static_cast<float>(step));
      saved.state.store.masters = CopyArray(std::as_bytes(std::span(masters)));
    }
    return checkpoint;
  };
  FaultyFiles files;
  MakeStateFolder(files);
  const auto frontiers = [&files] {
    std::vector<uint64_t> steps;
    const std::vector<std::string> names = ListCheckpoints(files, kFolder).value();
    for (const std::string& name : names) {
      steps.push_back(ReadManifest(files, kFolder, name)->shards(0).frontier());
    }
    return steps;
  };
  const KeptCheckpoints kept = {.retention = {.newest_count = 3, .every = 10}};
  for (const uint64_t step : {0, 8, 9, 12, 17, 24, 26, 28, 29}) {
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint_of(step, 1), kept).ok());
  }
  EXPECT_EQ(frontiers(), (std::vector<uint64_t>{12, 24, 26, 28, 29}));
  ASSERT_TRUE(ContinueFromNewest(files, kFolder, Generation{2}, kept).ok());
  EXPECT_EQ(frontiers(), (std::vector<uint64_t>{12, 24, 28, 29, 29}));
  // A return to step 12 ends the interval of step 24, which begins again.
  for (const uint64_t step : {12, 25, 27, 28, 29}) {
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint_of(step, 3), kept).ok());
  }
  EXPECT_EQ(frontiers(), (std::vector<uint64_t>{12, 25, 27, 28, 29}));
}

TEST(CheckpointTest, AFullDiskKeepsTheOldCheckpointAndFreesTheSpaceOfTheNewOne) {
  const Story story(1);
  FaultyFiles files;
  MakeStateFolder(files);
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[0]).ok());
  const std::vector<std::string> before = files.List(kFolder).value();
  files.SetFreeBytes(500);
  EXPECT_EQ(WriteCheckpoint(files, kFolder, story.checkpoints[1]).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(files.List(kFolder).value(), before);
  EXPECT_EQ(ReadCheckpoint(files, kFolder).value(), story.checkpoints[0]);
}

TEST(CheckpointTest, ACheckpointThatLatestCannotNameIsRemoved) {
  const Story story(1);
  int failure_count = 0;
  for (uint64_t free_bytes = 0;; free_bytes += 25) {
    FaultyFiles files;
    MakeStateFolder(files);
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[0]).ok());
    const std::vector<std::string> before = files.List(kFolder).value();
    files.SetFreeBytes(free_bytes);
    if (WriteCheckpoint(files, kFolder, story.checkpoints[1]).ok()) break;
    ++failure_count;
    std::vector<std::string> after = files.List(kFolder).value();
    std::erase(after, "LATEST.tmp");
    ASSERT_EQ(after, before) << free_bytes;
  }
  EXPECT_GT(failure_count, 10);
}

// Returns the paths of all files of the checkpoint NAME, and of LATEST.
std::vector<std::string> FilesOf(Files& files, const std::string& name) {
  std::vector<std::string> paths = {absl::StrCat(kFolder, "/LATEST")};
  const std::string folder = absl::StrCat(kFolder, "/", name);
  const std::vector<std::string> names = files.List(folder).value();
  for (const std::string& file : names) {
    paths.push_back(absl::StrCat(folder, "/", file));
  }
  return paths;
}

TEST(CheckpointTest, EveryDamagedByteOfTheNewestCheckpointIsFound) {
  FaultyFiles files;
  MakeStateFolder(files);
  RandomServer server(3, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, server.Next(40)).ok());
  }
  size_t byte_count = 0, found_count = 0;
  const std::vector<std::string> paths = FilesOf(files, Name(3));
  EXPECT_EQ(paths.size(), 3u);
  for (const std::string& path : paths) {
    const std::vector<std::byte> bytes = files.Read(path)->ToVector();
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte{0x01};
      files.SetBytes(path, damaged);
      const absl::Status status = ReadCheckpoint(files, kFolder).status();
      ++byte_count;
      found_count += status.code() == absl::StatusCode::kDataLoss ? 1 : 0;
      EXPECT_THAT(std::string(status.message()), HasSubstr("state/")) << path << " byte " << i;
    }
    files.SetBytes(path, {});
    EXPECT_EQ(ReadCheckpoint(files, kFolder).status().code(), absl::StatusCode::kDataLoss);
    files.SetBytes(path, bytes);
  }
  EXPECT_EQ(found_count, byte_count);
  EXPECT_GT(byte_count, 1000u);
  EXPECT_TRUE(ReadCheckpoint(files, kFolder).ok());
}

TEST(CheckpointTest, ErrorsNameTheFileAndTheCause) {
  FaultyFiles files;
  MakeStateFolder(files);
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, RandomServer(3, 1).Next(40)).ok());
  const std::string file = FilesOf(files, Name(1)).back();
  std::vector<std::byte> bytes = files.Read(file)->ToVector();
  const size_t size = bytes.size();
  bytes.back() ^= std::byte{1};
  files.SetBytes(file, bytes);
  EXPECT_EQ(ReadCheckpoint(files, kFolder).status().message(), file + ": wrong checksum");
  bytes.pop_back();
  files.SetBytes(file, bytes);
  EXPECT_EQ(ReadCheckpoint(files, kFolder).status().message(),
            absl::StrCat(file, ": wrong size (expected ", size, " bytes, got ", size - 1, ")"));
  ASSERT_TRUE(files.Remove(file).ok());
  EXPECT_EQ(ReadCheckpoint(files, kFolder).status().message(), file + ": missing");
}

TEST(CheckpointTest, ADamagedCheckpointDoesNotPreventTheNextOne) {
  const Story story(2);
  FaultyFiles files;
  MakeStateFolder(files);
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[0]).ok());
  files.SetBytes(absl::StrCat(kFolder, "/LATEST"), {});
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, story.checkpoints[1]).ok());
  EXPECT_EQ(ReadCheckpoint(files, kFolder).value(), story.checkpoints[1]);
}

Checkpoint Unhealthy(Checkpoint checkpoint, uint64_t version) {
  StoreSnapshot& store = checkpoint.shards[0].state.store;
  const std::vector<float> masters(24, std::numeric_limits<float>::quiet_NaN());
  store.masters = CopyArray(std::as_bytes(std::span(masters)));
  store.version = Version{version};
  return checkpoint;
}

TEST(CheckpointTest, Promise7TheNewestHealthyCheckpointIsNeverRemoved) {
  RandomServer server(5, 1);
  const Checkpoint healthy = server.Next(40);
  FaultyFiles files;
  MakeStateFolder(files);
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, healthy).ok());
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, healthy).ok());
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, Unhealthy(healthy, 1000 + i)).ok());
  }
  EXPECT_THAT(ListCheckpoints(files, kFolder).value(), ElementsAre(Name(2), Name(6), Name(7)));
  EXPECT_EQ(ReadNamedCheckpoint(files, kFolder, Name(2)).value(), healthy);
  EXPECT_FALSE(ReadManifest(files, kFolder, Name(7))->healthy());
  EXPECT_TRUE(ReadManifest(files, kFolder, Name(2))->healthy());
  // A newer healthy checkpoint takes its place.
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, server.Next(40)).ok());
  EXPECT_THAT(ListCheckpoints(files, kFolder).value(), ElementsAre(Name(7), Name(8)));
}

TEST(CheckpointTest, TheCheckpointBeforeTheLastChangeOfTheModeIsKept) {
  RandomServer server(5, 1);
  Checkpoint checkpoint = server.Next(40);
  std::optional<Rule>& rule = checkpoint.shards[0].state.rule;
  std::optional<RuleEvent>& next_rule = checkpoint.shards[0].state.next_rule;
  rule.reset();
  next_rule.reset();
  FaultyFiles files;
  MakeStateFolder(files);
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint).ok());
    }
  };
  write(3);
  // A checkpoint with an announced change continues with the new mode.
  next_rule = RuleEvent{Rule::Ssp(4, 2), Step{90}};
  write(1);
  rule = next_rule->rule;
  next_rule.reset();
  write(3);
  EXPECT_THAT(ListCheckpoints(files, kFolder).value(), ElementsAre(Name(3), Name(6), Name(7)));
  // Another number of the mode is no other mode.
  rule = Rule::Ssp(4, 8);
  write(3);
  EXPECT_THAT(ListCheckpoints(files, kFolder).value(), ElementsAre(Name(3), Name(9), Name(10)));
  rule = Rule::Async(4);
  write(3);
  EXPECT_THAT(ListCheckpoints(files, kFolder).value(), ElementsAre(Name(10), Name(12), Name(13)));
}

TEST(CheckpointTest, AShardWithUnchangedArraysIsLinkedInsteadOfWritten) {
  PosixFiles files;
  const std::string folder = absl::StrCat(testing::TempDir(), "/links");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(files.MakeFolder(folder).ok());
  RandomServer server(5, 2);
  Checkpoint checkpoint = server.Next(40);
  ASSERT_TRUE(WriteCheckpoint(files, folder, checkpoint).ok());
  // A worker's state and one version change, the arrays of the other shard do not.
  checkpoint.shards[0].state.frontier = Step{1000};
  checkpoint.shards[0].applied += 1;
  const std::vector<float> masters(24, 9);
  checkpoint.shards[1].state.store.masters = CopyArray(std::as_bytes(std::span(masters)));
  ++checkpoint.shards[1].state.store.version;
  ASSERT_TRUE(WriteCheckpoint(files, folder, checkpoint).ok());
  EXPECT_EQ(ReadCheckpoint(files, folder).value(), checkpoint);
  const auto link_count = [&](uint64_t number, size_t shard) {
    const SavedShard& saved = checkpoint.shards[shard];
    return std::filesystem::hard_link_count(absl::StrCat(
        folder, "/", Name(number), "/", ShardFileName(saved.shard, saved.state.store.version)));
  };
  EXPECT_EQ(link_count(2, 0), 2u);
  EXPECT_EQ(link_count(2, 1), 1u);
  // A new generation may have other arrays under the same version.
  ++checkpoint.run.generation;
  ASSERT_TRUE(WriteCheckpoint(files, folder, checkpoint).ok());
  EXPECT_EQ(link_count(3, 0), 1u);
  EXPECT_EQ(ReadCheckpoint(files, folder).value(), checkpoint);
}

TEST(CheckpointTest, AShardIsWrittenAgainIfItsOldFileIsMissing) {
  FaultyFiles files;
  MakeStateFolder(files);
  const Checkpoint checkpoint = RandomServer(3, 1).Next(40);
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint).ok());
  ASSERT_TRUE(files.Remove(FilesOf(files, Name(1)).back()).ok());
  ASSERT_TRUE(WriteCheckpoint(files, kFolder, checkpoint).ok());
  EXPECT_EQ(ReadCheckpoint(files, kFolder).value(), checkpoint);
}

Checkpoint At(Checkpoint checkpoint, std::optional<uint64_t> step, uint64_t generation) {
  checkpoint.step.reset();
  if (step.has_value()) checkpoint.step = Step{*step};
  checkpoint.run.generation = Generation{generation};
  return checkpoint;
}

std::vector<uint64_t> AlignedSteps(Files& files) {
  const auto aligned = ListAlignedCheckpoints(files, kFolder);
  EXPECT_TRUE(aligned.ok()) << aligned.status();
  std::vector<uint64_t> steps;
  for (const AlignedCheckpoint& checkpoint : *aligned) steps.push_back(checkpoint.step.value);
  return steps;
}

TEST(CheckpointTest, StepsThatAServerWentBackFromAreNotListed) {
  const Checkpoint some = RandomServer(3, 1).Next(40);
  FaultyFiles files;
  MakeStateFolder(files);
  EXPECT_THAT(AlignedSteps(files), ElementsAre());
  const auto write = [&](std::optional<uint64_t> step, uint64_t generation) {
    ASSERT_TRUE(WriteCheckpoint(files, kFolder, At(some, step, generation),
                                {.retention = {.newest_count = 20}})
                    .ok());
  };
  write(0, 1);
  write(8, 1);
  write(std::nullopt, 1);
  write(16, 1);
  EXPECT_THAT(AlignedSteps(files), ElementsAre(0, 8, 16));
  write(8, 2);
  EXPECT_THAT(AlignedSteps(files), ElementsAre(0, 8));
  write(24, 1);  // a process of the old generation
  EXPECT_THAT(AlignedSteps(files), ElementsAre(0, 8));
  write(12, 2);
  EXPECT_THAT(AlignedSteps(files), ElementsAre(0, 8, 12));
  EXPECT_EQ(ListAlignedCheckpoints(files, kFolder)->at(1).name, Name(5));
}

TEST(CheckpointTest, ContinueFromMakesAnOlderCheckpointTheNewestAndRemovesLaterOnes) {
  PosixFiles files;
  const std::string folder = absl::StrCat(testing::TempDir(), "/continue");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(files.MakeFolder(folder).ok());
  RandomServer server(5, 2);
  const Checkpoint first = At(server.Next(40), 8, 1);
  ASSERT_TRUE(WriteCheckpoint(files, folder, first).ok());
  ASSERT_TRUE(WriteCheckpoint(files, folder, At(server.Next(40), 16, 1)).ok());
  EXPECT_EQ(ContinueFrom(files, folder, Step{9}, Generation{2}).code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(ContinueFrom(files, folder, Step{8}, Generation{2}).ok());
  EXPECT_EQ(ReadCheckpoint(files, folder).value(), At(first, 8, 2));
  EXPECT_THAT(ListCheckpoints(files, folder).value(), ElementsAre(Name(1), Name(3)));
  for (const SavedShard& saved : first.shards) {
    EXPECT_EQ(
        std::filesystem::hard_link_count(absl::StrCat(
            folder, "/", Name(3), "/", ShardFileName(saved.shard, saved.state.store.version))),
        2u);
  }
  ASSERT_TRUE(ContinueFromNewest(files, folder, Generation{3}).ok());
  EXPECT_EQ(ReadCheckpoint(files, folder).value(), At(first, 8, 3));
}

}  // namespace
}  // namespace thinwire
