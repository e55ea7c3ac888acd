#include "cli/checkpoint/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/checkpoint/fetch.h"
#include "cli/checkpoint/state_dir.h"
#include "cli/process/temp_dir.h"
#include "server/durable/checkpoint.h"
#include "server/durable/saved_job.h"
#include "server/durable/testing/training_job.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A job of two servers, whose folders are in the state directory `dir`, and a bucket that is a
// folder of this machine.
class MirrorTest : public testing::Test {
 protected:
  MirrorTest() { setenv("PATH", "/usr/bin:/bin", 1); }

  // Trains STEPS steps and writes a checkpoint of each of SERVERS to DIR.
  void Train(uint64_t steps, const std::string& dir,
             const std::vector<uint32_t>& servers = {0, 1}) {
    job_.Train(steps);
    Save(dir, servers);
  }

  void Save(const std::string& dir, const std::vector<uint32_t>& servers = {0, 1}) {
    std::vector<Checkpoint> saved = job_.Save();
    std::filesystem::create_directory(dir);
    for (const uint32_t server : servers) {
      Checkpoint& checkpoint = saved[server];
      checkpoint.run.run = run_;
      checkpoint.next = next_record_;
      checkpoint.run.join.mutable_config()->mutable_recovery()->set_durability(durability_);
      const std::string folder = absl::StrCat(dir, "/server-", server);
      std::filesystem::create_directory(folder);
      const absl::Status status = WriteCheckpoint(files_, folder, checkpoint);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  absl::StatusOr<std::string> Mirror(const std::string& dir) {
    err_.str("");
    auto bucket = Bucket::Make(url_, *signals_);
    return MirrorState(dir, *bucket, err_);
  }
  absl::StatusOr<std::string> Fetch(const std::string& dir,
                                    std::optional<ServerId> server = std::nullopt) {
    err_.str("");
    auto bucket = Bucket::Make(url_, *signals_);
    return FetchState(dir, server, *bucket, err_);
  }

  std::vector<std::vector<float>> MastersIn(const std::string& dir) {
    const auto read = ReadSavedJob(files_, dir);
    EXPECT_TRUE(read.ok()) << read.status();
    return TrainingJob(MomentumSetting(), read->servers).Masters();
  }

  std::string Path(const std::string& name) const { return temp_->PathOf(name); }
  // Returns the folder of a checkpoint of SERVER in DIR.
  static std::string CheckpointOf(const std::string& dir, uint32_t server, uint32_t number) {
    return absl::StrCat(dir, "/server-", server, "/checkpoint-0000000000000000000", number);
  }
  // Changes a byte of the first array file in FOLDER. Its size and time stay.
  static void Damage(const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".safetensors") continue;
      const auto time = entry.last_write_time();
      std::fstream(entry.path(), std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('?');
      std::filesystem::last_write_time(entry.path(), time);
      return;
    }
    FAIL() << folder << " has no array";
  }

  const std::unique_ptr<Signals> signals_ = std::move(*Signals::Block());
  const std::unique_ptr<TempDir> temp_ = std::move(*TempDir::Make(testing::TempDir()));
  const std::string dir_ = Path("state");
  const std::string url_ = Path("bucket");
  PosixFiles files_;
  TrainingJob job_{MomentumSetting(), 2, 100};
  RunId run_{7};
  uint64_t next_record_ = 1;
  Recovery::Durability::Value durability_ = Recovery::Durability::checkpoint;
  std::ostringstream err_;
};

TEST_F(MirrorTest, AFetchedStateHasTheBitsOfTheMirroredOne) {
  Train(3, dir_);
  std::ofstream(dir_ + "/job.textproto") << "name: \"tiny\"";
  std::ofstream(dir_ + "/server-0/lead") << "decisions";
  std::ofstream(dir_ + "/server-0/log-00000000000000000001") << "records";
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 2 servers; a fetch continues at step 3");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/mirror.tmp"));
  std::filesystem::remove_all(dir_);
  EXPECT_EQ(Fetch(dir_).value(), dir_ + ": fetched 2 servers at step 3");
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(MastersIn(dir_), job_.Masters());
  EXPECT_EQ(ReadText(dir_ + "/job.textproto"), "name: \"tiny\"");
  EXPECT_EQ(ReadText(dir_ + "/server-0/lead"), "decisions");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/server-0/log-00000000000000000001"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/mirror.tmp"));
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  EXPECT_EQ(std::filesystem::status(dir_ + "/server-0/LATEST").permissions() & others,
            std::filesystem::perms::none)
      << "a manifest has the key of the tokens";
}

TEST_F(MirrorTest, AFileInTheBucketIsNotSentAgain) {
  Train(3, dir_);
  ASSERT_TRUE(Mirror(dir_).ok());
  Damage(CheckpointOf(url_, 1, 1));
  ASSERT_TRUE(Mirror(dir_).ok());
  const std::string made = Path("made");
  const absl::Status status = Fetch(made).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), StartsWith(CheckpointOf(url_, 1, 1)));
  EXPECT_THAT(std::string(status.message()), HasSubstr(": wrong checksum"));
  EXPECT_TRUE(std::filesystem::is_empty(made));
}

TEST_F(MirrorTest, AnOlderDamagedCheckpointIsLeftOut) {
  Train(3, dir_);
  Train(1, dir_);
  ASSERT_TRUE(Mirror(dir_).ok());
  Damage(CheckpointOf(url_, 0, 1));
  EXPECT_EQ(Fetch(Path("made")).value(), Path("made") + ": fetched 2 servers at step 4");
  EXPECT_THAT(err_.str(), StartsWith("warning: left out: "));
  EXPECT_FALSE(std::filesystem::exists(CheckpointOf(Path("made"), 0, 1)));
  EXPECT_TRUE(std::filesystem::exists(CheckpointOf(Path("made"), 1, 1)));
}

TEST_F(MirrorTest, MachinesKeepTheCheckpointsThatBelongTogether) {
  const std::string other = Path("other");
  Train(1, dir_, {0});
  Save(other, {1});
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 1 server");
  EXPECT_THAT(err_.str(),
              HasSubstr(absl::StrCat("do not belong together yet: ", url_, "/server-1")));
  EXPECT_EQ(Mirror(other).value(), url_ + ": mirrored 1 server; a fetch continues at step 1");
  // The first machine is three checkpoints ahead, and has removed the first one.
  for (int i = 0; i < 3; ++i) {
    Train(1, dir_, {0});
    if (i < 2) Save(other, {1});
  }
  EXPECT_FALSE(std::filesystem::exists(CheckpointOf(dir_, 0, 1)));
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 1 server; a fetch continues at step 1");
  EXPECT_TRUE(std::filesystem::exists(CheckpointOf(url_, 0, 1)));
  EXPECT_EQ(Fetch(Path("made")).value(), Path("made") + ": fetched 2 servers at step 1");
  EXPECT_EQ(Mirror(other).value(), url_ + ": mirrored 1 server; a fetch continues at step 3");
  EXPECT_FALSE(std::filesystem::exists(CheckpointOf(url_, 1, 1)));
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 1 server; a fetch continues at step 3");
  EXPECT_FALSE(std::filesystem::exists(CheckpointOf(url_, 0, 1)));
  EXPECT_EQ(Fetch(Path("later")).value(), Path("later") + ": fetched 2 servers at step 3");
}

TEST_F(MirrorTest, AnInterruptedCopyLeavesTheOlderCheckpoints) {
  Train(3, dir_);
  ASSERT_TRUE(Mirror(dir_).ok());
  const auto masters = job_.Masters();
  Train(1, dir_);
  // A program that fails at the upload of LATEST.
  const std::string program = Path("rclone");
  std::ofstream(program)
      << "#!/bin/sh\n"
         "case \"$*\" in *' + /server-*/LATEST --filter - '*) echo lost >&2; exit 5 ;; esac\n"
         "exec /usr/bin/rclone \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  setenv("PATH", absl::StrCat(temp_->path(), ":/usr/bin:/bin").c_str(), 1);
  EXPECT_EQ(Mirror(dir_).status(), absl::UnavailableError(url_ + ": rclone: lost"));
  setenv("PATH", "/usr/bin:/bin", 1);
  ASSERT_TRUE(std::filesystem::exists(CheckpointOf(url_, 0, 2)));
  EXPECT_EQ(Fetch(Path("made")).value(), Path("made") + ": fetched 2 servers at step 3");
  EXPECT_EQ(MastersIn(Path("made")), masters);
  EXPECT_FALSE(std::filesystem::exists(CheckpointOf(Path("made"), 0, 2)));
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 2 servers; a fetch continues at step 4");
}

TEST_F(MirrorTest, TheRestOfAnotherCopyIsRemoved) {
  Train(3, dir_);
  ASSERT_TRUE(Mirror(dir_).ok());
  const std::string rest = CheckpointOf(url_, 0, 5);
  std::filesystem::create_directory(rest);
  std::ofstream(rest + "/shard-00000-v9.safetensors") << "torn";
  ASSERT_TRUE(Mirror(dir_).ok());
  EXPECT_FALSE(std::filesystem::exists(rest));
}

TEST_F(MirrorTest, ServersWriteAndRemoveCheckpointsMeanwhile) {
  Train(1, dir_);
  std::atomic<bool> done = false;
  int written = 0;
  std::thread server([&] {
    for (; !done; ++written) Train(1, dir_);
  });
  for (int i = 0; i < 4; ++i) {
    const auto line = Mirror(dir_);
    EXPECT_TRUE(line.ok()) << line.status();
    const std::string made = absl::StrCat(Path("made"), i);
    const auto fetched = Fetch(made);
    EXPECT_TRUE(fetched.ok()) << fetched.status();
  }
  done = true;
  server.join();
  EXPECT_GT(written, 4) << "the checkpoints did not change during the copies";
}

TEST_F(MirrorTest, TheCheckpointsOfAnotherRunAreNotReplaced) {
  Train(3, dir_);
  ASSERT_TRUE(Mirror(dir_).ok());
  run_ = RunId{8};
  Train(1, Path("other"));
  EXPECT_EQ(Mirror(Path("other")).status(),
            absl::FailedPreconditionError(
                url_ + "/server-0: checkpoints of another run (expected run 0000000000000008 or an "
                       "empty folder, got run 0000000000000007)"));
  EXPECT_EQ(Fetch(Path("made")).value(), Path("made") + ": fetched 2 servers at step 3");
}

TEST_F(MirrorTest, WithALogServersGoBackToTheirOwnNewestCheckpoints) {
  durability_ = Recovery::Durability::log;
  next_record_ = 90;
  Train(3, dir_);
  Train(1, dir_, {1});
  EXPECT_EQ(Mirror(dir_).value(), url_ + ": mirrored 2 servers; a fetch continues at steps 3 to 4");
  EXPECT_EQ(Fetch(Path("alone"), ServerId{1}).status(),
            absl::FailedPreconditionError(
                url_ + "/server-1: durability: log: a server alone cannot be fetched (expected a "
                       "fetch of all servers into one folder, got --server 1)"));
  EXPECT_EQ(Fetch(Path("made")).value(),
            Path("made") + ": fetched 2 servers at steps 3 to 4, without the event log");
  // Without a log, a checkpoint from which one must be replayed would not be read.
  for (uint32_t server = 0; server < 2; ++server) {
    const auto read = ReadCheckpoint(files_, absl::StrCat(Path("made"), "/server-", server));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_LE(read->next, 1u);
    EXPECT_EQ(read->run.generation, Generation{2});
  }
  EXPECT_FALSE(std::filesystem::exists(Path("made") + "/server-0.before-1"));
}

TEST_F(MirrorTest, OneServerIsFetchedAlone) {
  Train(3, dir_);
  std::ofstream(dir_ + "/job.textproto") << "name: \"tiny\"";
  ASSERT_TRUE(Mirror(dir_).ok());
  const std::string made = Path("made");
  EXPECT_EQ(Fetch(made, ServerId{1}).value(),
            made + ": fetched server 1, newest checkpoint-00000000000000000001");
  EXPECT_FALSE(std::filesystem::exists(made + "/server-0"));
  EXPECT_FALSE(std::filesystem::exists(made + "/job.textproto"));
  EXPECT_EQ(Fetch(made, ServerId{1}).status(),
            absl::FailedPreconditionError(
                made + ": has state already (expected a folder without server-1)"));
  EXPECT_EQ(Fetch(made, ServerId{2}).status(),
            absl::NotFoundError(url_ + ": no state directory (expected server-0)"));
  EXPECT_TRUE(Fetch(made, ServerId{0}).ok());
  EXPECT_EQ(MastersIn(made), job_.Masters());
  EXPECT_EQ(Fetch(made).status(),
            absl::FailedPreconditionError(
                made + ": has state already (expected a folder without server-0)"));
}

TEST_F(MirrorTest, AStateDirectoryWithoutACheckpointIsAnError) {
  EXPECT_EQ(Mirror(dir_).status().code(), absl::StatusCode::kNotFound);
  std::filesystem::create_directory(dir_);
  EXPECT_EQ(Mirror(dir_).status(),
            absl::NotFoundError(dir_ + ": no state directory (expected server-0)"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_)) << "a new run refuses a folder with files";
  std::filesystem::create_directories(dir_ + "/server-0");
  EXPECT_EQ(Mirror(dir_).status(), absl::NotFoundError(dir_ + ": no server has a checkpoint yet"));
  EXPECT_TRUE(absl::IsNotFound(Fetch(Path("made")).status()));
}

TEST_F(MirrorTest, OnlyOneProcessMirrorsAStateDirectory) {
  Train(3, dir_);
  std::filesystem::create_directory(dir_ + "/mirror.tmp");
  std::ofstream(dir_ + "/mirror.tmp/own") << "left by a killed process";
  auto lock = files_.Lock(dir_ + "/mirror.tmp/LOCK");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(
      Mirror(dir_).status(),
      absl::UnavailableError(dir_ + ": another process mirrors or fetches this state directory"));
  lock->reset();
  EXPECT_TRUE(Mirror(dir_).ok());
}

}  // namespace
}  // namespace thinwire
