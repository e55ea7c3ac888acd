#include "cli/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/temp_dir.h"
#include "proto/config_check.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TrainConfig Train() {
  TrainConfig train;
  train.set_servers(2);
  train.mutable_consistency()->set_workers(3);
  train.mutable_consistency()->set_lease_seconds(4);
  train.mutable_optimization()->set_optimizer("adam");
  train.mutable_compression()->set_push("bf16");
  train.mutable_task()->set_model("mlp");
  train.set_silence_seconds(7);
  train.add_straggler("1:50ms");
  return train;
}

TEST(LaunchTest, EveryServerGetsItsNumberAndTheRules) {
  const ServerConfig server = ServerConfigOf(Train(), ServerId{1});
  EXPECT_EQ(server.server(), 1);
  EXPECT_EQ(server.servers(), 2);
  EXPECT_EQ(server.listen(), "127.0.0.1:0");
  EXPECT_EQ(server.consistency().workers(), 3);
  EXPECT_EQ(server.consistency().lease_seconds(), 4);
  EXPECT_EQ(server.optimization().optimizer(), "adam");
  EXPECT_TRUE(CheckServerConfig(server).ok());
}

TEST(LaunchTest, EveryWorkerGetsTheServersInOrderAndItsOwnDelay) {
  const WorkerConfig worker = WorkerConfigOf(Train(), WorkerId{1}, {"127.0.0.1:7", "127.0.0.1:5"});
  EXPECT_EQ(worker.worker(), 1);
  EXPECT_EQ(worker.workers(), 3);
  EXPECT_THAT(worker.servers(), ElementsAre("127.0.0.1:7", "127.0.0.1:5"));
  EXPECT_DOUBLE_EQ(worker.delay_seconds(), 0.05);
  EXPECT_EQ(worker.silence_seconds(), 7);
  EXPECT_EQ(worker.compression().push(), "bf16");
  EXPECT_EQ(worker.task().model(), "mlp");
  EXPECT_TRUE(CheckWorkerConfig(worker).ok());
  EXPECT_EQ(WorkerConfigOf(Train(), WorkerId{2}, {"127.0.0.1:7"}).delay_seconds(), 0);
}

TEST(LaunchTest, ProgramsAreFoundBesideThisOneOrWhereToldTo) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"cli", "server", "worker"})
    std::filesystem::create_directory(dir->PathOf(name));
  for (const char* name : {"cli/thinwire", "server/server", "worker/worker"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  std::filesystem::create_symlink(dir->PathOf("cli/thinwire"), dir->PathOf("link"));
  const auto beside = FindPrograms(dir->PathOf("link"), "");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->worker, std::filesystem::canonical(dir->PathOf("worker/worker")).string());
  EXPECT_EQ(FindPrograms("/nowhere", dir->path())->server, dir->PathOf("server/server"));
  EXPECT_EQ(FindPrograms("/nowhere", dir->PathOf("server")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(LaunchTest, ProgramsOfOneFolderFindEachOther) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"thinwire", "server", "worker"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  const auto found = FindPrograms(dir->PathOf("thinwire"), "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->server, std::filesystem::canonical(dir->PathOf("server")).string());
  EXPECT_EQ(found->worker, std::filesystem::canonical(dir->PathOf("worker")).string());
}

TEST(LaunchTest, AMissingProgramIsNamedWithThePlaceLookedAt) {
  const auto dir = *TempDir::Make(testing::TempDir());
  EXPECT_THAT(std::string(FindPrograms("", dir->path()).status().message()),
              HasSubstr("want " + dir->path() + "/server/server"));
}

TEST(LaunchTest, AServerTellsItsAddress) {
  EXPECT_EQ(*ParseListening("listening 127.0.0.1:4711"), "127.0.0.1:4711");
  EXPECT_FALSE(ParseListening("hello").ok());
  EXPECT_FALSE(ParseListening("listening here").ok());
}

}  // namespace
}  // namespace thinwire
