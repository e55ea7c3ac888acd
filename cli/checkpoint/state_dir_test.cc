#include "cli/checkpoint/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"
#include "common/base/exit_code.h"
#include "common/files/safetensors.h"
#include "common/model/partition.h"
#include "proto/join_tensors.h"
#include "server/durable/checkpoint.h"
#include "server/durable/saved_job.h"
#include "server/durable/testing/training_job.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

// The state of a job of two servers and two workers in the folder `source`.
class StateDirTest : public testing::Test {
 protected:
  StateDirTest() : dir_(std::move(*TempDir::Make(testing::TempDir()))) {
    config_.set_name("tiny");
    config_.set_servers(3);
    config_.mutable_consistency()->set_workers(2);
    config_.mutable_compression()->set_shard_size(150);
    config_.mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
    job_.Train(3);
    std::filesystem::create_directory(source_);
    for (Checkpoint& server : job_.Save()) {
      server.run.join.mutable_config()->set_name("tiny");
      server.run.join.mutable_config()->mutable_consistency()->set_workers(2);
      const std::string folder = absl::StrCat(source_, "/server-", server.server.value);
      std::filesystem::create_directory(folder);
      EXPECT_TRUE(WriteCheckpoint(files_, folder, server).ok());
    }
  }

  // Returns the message of the error of an import into a new folder.
  std::string ImportError(const std::string& source) {
    const auto line = ImportState(files_, source, dir_->PathOf("made"), config_);
    EXPECT_FALSE(line.ok()) << *line;
    EXPECT_EQ(ExitCodeOf(line.status()), ExitCode::kConfig) << line.status();
    EXPECT_FALSE(std::filesystem::exists(dir_->PathOf("made")));
    return std::string(line.status().message());
  }

  std::vector<std::vector<float>> MastersIn(const std::string& dir) {
    const auto read = ReadSavedJob(files_, dir);
    EXPECT_TRUE(read.ok()) << read.status();
    return TrainingJob(MomentumSetting(), read->servers).Masters();
  }

  void WriteModel(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
                  const std::string& values) {
    std::ofstream(path) << SafetensorsHeader(tensors) << values;
  }

  std::unique_ptr<TempDir> dir_;
  const std::string source_ = dir_->PathOf("source");
  PosixFiles files_;
  JobConfig config_;
  TrainingJob job_{MomentumSetting(), 2, 100};
};

TEST_F(StateDirTest, AStateIsImportedForOtherServersAndResumedWithOthersAgain) {
  const std::string dir = dir_->PathOf("made");
  const auto imported = ImportState(files_, source_, dir, config_);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(*imported, dir + ": 3 servers at step 3");
  EXPECT_EQ(MastersIn(dir), job_.Masters());
  EXPECT_TRUE(PrepareStateDir(dir, /*resume=*/true, config_).ok());
  EXPECT_EQ(FitState(files_, dir, config_).value(), "");
  config_.set_servers(1);
  EXPECT_EQ(FitState(files_, dir, config_).value(),
            absl::StrCat("converted the state of 3 servers to 1 server at step 3; the old folders "
                         "are ",
                         dir, "/server-N.before-1"));
  EXPECT_EQ(FitState(files_, dir, config_).value(), "");
  EXPECT_EQ(MastersIn(dir), job_.Masters());
}

TEST_F(StateDirTest, ASourceThatDoesNotFitIsRefused) {
  EXPECT_EQ(ImportError("/nowhere"), "--from: /nowhere: no such file or folder");
  EXPECT_EQ(ImportError(dir_->path()), dir_->path() + "/server-0: no checkpoint");
  config_.mutable_optimization()->set_optimizer(Optimization::Optimizer::adam);
  EXPECT_THAT(ImportError(source_), HasSubstr(": the saved job has another configuration: "
                                              "optimization.optimizer differs from the job's "
                                              "(expected adam, got sgd)"));
  config_.clear_optimization();
  config_.set_name("large");
  EXPECT_EQ(ImportError(source_), source_ +
                                      ": holds the state of another job (expected \"large\", "
                                      "got \"tiny\")");
  config_.set_name("tiny");
  config_.set_servers(5000);
  EXPECT_THAT(ImportError(source_), HasSubstr("servers: out of range (expected 1 to 4096"));
  config_.set_servers(3);
  config_.clear_recovery();
  EXPECT_THAT(ImportError(source_),
              HasSubstr("durability: import needs a job that keeps its state"));
  config_.mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
  const std::string manifest = source_ + "/server-1/checkpoint-00000000000000000001/manifest.json";
  std::filesystem::resize_file(manifest, 50);
  EXPECT_EQ(ImportError(source_), manifest + ": wrong checksum");
  std::filesystem::remove_all(source_ + "/server-1");
  EXPECT_EQ(ImportError(source_), source_ + "/server-1: missing (expected the folder of server 1)");
}

TEST_F(StateDirTest, ATargetWithFilesIsRefused) {
  const auto line = ImportState(files_, source_, dir_->path(), config_);
  EXPECT_EQ(line.status().message(),
            "--state_dir: " + dir_->path() + " is not empty (expected an empty folder)");
}

TEST_F(StateDirTest, AModelFileIsImportedAtStepZeroWithoutItsBuffers) {
  const std::string path = dir_->PathOf("model.safetensors");
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  WriteModel(path,
             {{"bn.num_batches_tracked", "I64", {}, 8},
              {"w", "F32", {2, 2}, 16},
              {"a", "F32", {2}, 8},
              {"bn.running_mean", "F32", {1}, 4}},
             std::string(8, '\0') + bytes);
  config_.mutable_compression()->clear_shard_size();
  config_.mutable_task()->set_train_examples(500);
  config_.mutable_task()->set_epochs(4);
  const std::string dir = dir_->PathOf("made");
  const auto imported = ImportState(files_, path, dir, config_);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(*imported, dir + ": 3 servers at step 0");
  const auto read = ReadSavedJob(files_, dir);
  ASSERT_TRUE(read.ok()) << read.status();
  const JoinRequest& join = read->servers[0].run.join;
  ASSERT_EQ(join.tensors_size(), 2);
  EXPECT_EQ(join.tensors(0).name(), "w") << "the order of the file";
  EXPECT_EQ(join.tensors(1).name(), "a");
  EXPECT_EQ(join.planned_examples(), 2000u);
}

TEST_F(StateDirTest, TensorsOfAModelFileBelongToTheirParameterGroups) {
  const std::string path = dir_->PathOf("model.safetensors");
  WriteModel(path, {{"w", "F32", {2, 2}, 16}, {"bias", "F32", {2}, 8}}, std::string(24, '\0'));
  config_.mutable_compression()->clear_shard_size();
  config_.mutable_task()->set_train_examples(500);
  ParameterGroup& group = *config_.add_parameter_group();
  group.set_match("bi*");
  group.set_optimizer(Optimization::Optimizer::lars);
  const std::string dir = dir_->PathOf("made");
  const auto imported = ImportState(files_, path, dir, config_);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto read = ReadSavedJob(files_, dir);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(TensorsOf(read->servers[0].run.join),
            (std::vector<TensorShape>{{"w", {2, 2}},
                                      {.name = "bias", .shape = {2}, .group = 1, .whole = true}}));
}

TEST_F(StateDirTest, AFileThatIsNoModelIsRefused) {
  const std::string path = dir_->PathOf("model.safetensors");
  std::ofstream(path) << "no model";
  EXPECT_THAT(ImportError(path), HasSubstr(path + ": "));
  WriteModel(path, {{"w", "F16", {2}, 4}}, "abcd");
  EXPECT_EQ(ImportError(path), path + ": tensor \"w\": wrong type (expected F32, got F16)");
  WriteModel(path, {{"running_mean", "F32", {1}, 4}}, "abcd");
  EXPECT_EQ(ImportError(path), path + ": no parameters");
}

}  // namespace
}  // namespace thinwire
