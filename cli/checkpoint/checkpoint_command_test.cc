#include "cli/checkpoint/checkpoint_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/safetensors.h"
#include "common/memory/array_bytes.h"
#include "common/model/partition.h"
#include "config/command_flags.h"
#include "proto/join_tensors.h"
#include "server/durable/checkpoint.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

constexpr uint32_t kServers = 2;

// The value of the exported model at a position of one of its tensors.
float ValueAt(uint32_t tensor, uint64_t position) {
  return static_cast<float>(100000 * tensor + position);
}

// The state directory of a job with two servers, in a simulated file system.
class CheckpointCommandTest : public testing::Test {
 protected:
  CheckpointCommandTest() {
    EXPECT_TRUE(files_.MakeFolder("state").ok());
    for (uint32_t server = 0; server < kServers; ++server) {
      EXPECT_TRUE(files_.MakeFolder(Folder(server)).ok());
    }
  }

  static std::string Folder(uint32_t server) { return absl::StrCat("state/server-", server); }

  // Writes a checkpoint of SERVER, whose shards have VERSION.
  // AVERAGED: the average of each value is the negative value.
  void Write(uint32_t server, uint64_t version, uint64_t run = 7, bool averaged = false) {
    Checkpoint checkpoint = {.server = ServerId{server}, .run = {.run = RunId{run}}};
    JoinRequest& join = checkpoint.run.join;
    join.set_job("tiny");
    join.set_servers(kServers);
    join.set_shard_size(partition_.shard_size());
    SetTensors(partition_.tensors(), join);
    join.mutable_config()->mutable_consistency()->set_mode(mode_);
    checkpoint.test = test_;
    checkpoint.members = {{.worker = WorkerId{1}, .incarnation = Incarnation{3}}};
    for (const ShardId shard : partition_.ShardsOf(ServerId{server})) {
      std::vector<float> masters;
      for (const Segment& segment : partition_.segments(shard)) {
        for (uint64_t i = 0; i < segment.count; ++i) {
          masters.push_back(ValueAt(segment.tensor, segment.offset + i));
        }
      }
      SavedShard saved = {.shard = shard};
      saved.state.frontier = Step{version};
      saved.state.workers.resize(2);
      saved.state.workers[1] = {.incarnation = Incarnation{3}, .next = Step{version}};
      saved.state.store.version = Version{version};
      saved.state.store.masters = CopyArray(std::as_bytes(std::span(masters)));
      if (averaged) {
        std::ranges::transform(masters, masters.begin(), std::negate<float>());
        saved.state.store.updater.average = CopyArray(std::as_bytes(std::span(masters)));
      }
      checkpoint.shards.push_back(std::move(saved));
    }
    const absl::Status status = WriteCheckpoint(files_, Folder(server), checkpoint);
    ASSERT_TRUE(status.ok()) << status;
  }

  Partition partition_ =
      Partition::Make({{"w", {90, 100}}, {"b", {100}}, {"v", {100, 10}}, {"c", {}}}, 4096, kServers)
          .value();
  std::optional<TestResult> test_;  // of the checkpoints that Write writes
  Consistency::Mode::Value mode_ = Consistency::Mode::sync;
  FaultyFiles files_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CheckpointCommandTest, ListShowsEveryCheckpointOfEveryServer) {
  Write(0, 4);
  Write(0, 5);
  Write(1, 5);
  EXPECT_EQ(PrintCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_EQ(err_.str(), "");
  std::vector<std::string> lines;
  std::istringstream text(out_.str());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u) << out_.str();
  EXPECT_THAT(lines[0], HasSubstr("server  checkpoint"));
  EXPECT_THAT(lines[1], testing::ContainsRegex("^0       checkpoint-00000000000000000001  "
                                               "[0-9]+ +4 +4 +[0-9]+ +yes +no +-$"));
  EXPECT_THAT(lines[2], testing::ContainsRegex("^0       checkpoint-00000000000000000002  "
                                               "[0-9]+ +5 +5 +[0-9]+ +yes +yes +-$"));
  EXPECT_THAT(lines[3], testing::ContainsRegex("^1       checkpoint-00000000000000000001  "
                                               "[0-9]+ +5 +5 +[0-9]+ +yes +yes +-$"));
}

TEST_F(CheckpointCommandTest, InspectShowsTheJobItsTensorsShardsAndWorkers) {
  Write(0, 5);
  Write(1, 5);
  EXPECT_EQ(InspectCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_EQ(err_.str(), "");
  EXPECT_THAT(out_.str(), HasSubstr("state/server-0/checkpoint-00000000000000000001: server 0 of "
                                    "job tiny, run 0000000000000007, generation 0, healthy\n"
                                    "tensor w [90, 100]\ntensor b [100]\ntensor v [100, 10]\n"
                                    "tensor c []\n"));
  EXPECT_THAT(out_.str(), HasSubstr(" values, version 5, step 5\n"));
  EXPECT_THAT(out_.str(), HasSubstr("worker 1: process 3, next step 5\n"));
  EXPECT_THAT(out_.str(), HasSubstr("server 1 of job tiny"));
}

TEST_F(CheckpointCommandTest, VerifyFindsADamagedFileAndGoesOn) {
  Write(0, 4);
  Write(0, 5);
  Write(1, 5);
  EXPECT_EQ(VerifyCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_EQ(err_.str(), "");
  const std::string folder = Folder(0) + "/checkpoint-00000000000000000001";
  const std::string file = folder + "/" + files_.List(folder)->back();
  std::vector<std::byte> bytes = files_.Read(file)->ToVector();
  bytes.back() ^= std::byte{1};
  files_.SetBytes(file, bytes);
  out_.str("");
  EXPECT_EQ(VerifyCheckpoints(files_, "state", out_, err_), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), file + ": wrong checksum\n");
  EXPECT_THAT(out_.str(), HasSubstr("state/server-0/checkpoint-00000000000000000002: ok ("));
  EXPECT_THAT(out_.str(), HasSubstr("state/server-1/checkpoint-00000000000000000001: ok ("));
}

TEST_F(CheckpointCommandTest, ExportWritesTheWholeModel) {
  Write(0, 5);
  Write(1, 5);
  const std::string file = testing::TempDir() + "/exported.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kOk) << err_.str();
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(out_.str(), file + ": 4 tensors, step 5\n");
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const auto index =
      ParseSafetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "exported");
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->size(), partition_.tensors().size());
  uint64_t compared_count = 0;
  for (uint32_t tensor = 0; tensor < partition_.tensors().size(); ++tensor) {
    const TensorShape& shape = partition_.tensors()[tensor];
    const SafetensorsEntry& entry = index->find(shape.name)->second;
    EXPECT_EQ(entry.shape, shape.shape);
    for (uint64_t i = 0; i < entry.value_count(); ++i, ++compared_count) {
      float value = 0;
      std::memcpy(&value, entry.bytes.data() + i * sizeof(value), sizeof(value));
      ASSERT_EQ(value, ValueAt(tensor, i)) << shape.name << " " << i;
    }
  }
  EXPECT_EQ(compared_count, partition_.value_count());
}

TEST_F(CheckpointCommandTest, ExportWritesTheAveragesOrTheMasters) {
  Write(0, 5, 7, /*averaged=*/true);
  Write(1, 5, 7, /*averaged=*/true);
  const std::string file = testing::TempDir() + "/averages.safetensors";
  for (const bool masters : {false, true}) {
    out_.str("");
    EXPECT_EQ(ExportCheckpoint(files_, "state", file, {.masters = masters}, out_, err_),
              ExitCode::kOk);
    EXPECT_EQ(out_.str(), absl::StrCat(file, ": 4 tensors, step 5",
                                       masters ? "\n" : ", averages of the parameters\n"));
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    const auto index = ParseSafetensors(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "averages");
    ASSERT_TRUE(index.ok()) << index.status();
    float value = 0;
    std::memcpy(&value, index->at("b").bytes.data() + 7 * sizeof(value), sizeof(value));
    EXPECT_EQ(value, masters ? ValueAt(1, 7) : -ValueAt(1, 7));
  }
}

TEST_F(CheckpointCommandTest, ListShowsTheTestAfterWhichACheckpointWasMade) {
  test_ = TestResult{.step = Step{4}, .value = 0.89436};
  Write(0, 5);
  test_ = TestResult{.step = Step{4}, .value = 0.29, .is_loss = true};
  Write(1, 5);
  EXPECT_EQ(PrintCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr(" newest  test\n"));
  EXPECT_THAT(out_.str(), HasSubstr("yes     0.8944 at step 4\n"));
  EXPECT_THAT(out_.str(), HasSubstr("yes     loss 0.2900 at step 4\n"));
}

TEST_F(CheckpointCommandTest, ExportWritesTheCheckpointsOfAStep) {
  for (const uint64_t step : {4, 5}) {
    Write(0, step);
    Write(1, step);
  }
  const std::string file = testing::TempDir() + "/step.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {.step = 4}, out_, err_), ExitCode::kOk)
      << err_.str();
  EXPECT_EQ(out_.str(), file + ": 4 tensors, step 4\n");
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {.step = 3}, out_, err_), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("state: not all servers have a checkpoint of step 3"));
}

// A server was killed before it had its next checkpoint.
TEST_F(CheckpointCommandTest, ExportWritesTheNewestStepOfAllServers) {
  Write(0, 5);
  Write(0, 6);
  Write(1, 5);
  const std::string file = testing::TempDir() + "/exported.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kOk) << err_.str();
  EXPECT_EQ(out_.str(), file + ": 4 tensors, step 5\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CheckpointCommandTest, ExportRefusesServersWithoutACommonStep) {
  Write(0, 5);
  Write(0, 6);
  Write(1, 4);
  Write(1, 7);
  const std::string file = testing::TempDir() + "/mixed.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kConfig);
  EXPECT_EQ(err_.str(),
            "state: the servers have no newest checkpoint of the same step (server 0 has steps 6, "
            "5; server 1 has steps 7, 4); resume the run with servers: 2 and stop it first\n");
  EXPECT_FALSE(std::ifstream(file).is_open());
}

TEST_F(CheckpointCommandTest, InAsyncExportWarnsIfTheStepsDiffer) {
  mode_ = Consistency::Mode::async;
  Write(0, 5);
  Write(1, 6);
  const std::string file = testing::TempDir() + "/exported.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kOk);
  EXPECT_EQ(err_.str(),
            "warning: the shards have different steps (5-6), so the parameters are not those of "
            "one step\n");
}

TEST_F(CheckpointCommandTest, ExportRefusesAnIncompleteJob) {
  Write(0, 5);
  const std::string file = testing::TempDir() + "/refused.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), "state/server-1: no checkpoint (expected one per server)\n");
  Write(1, 5, /*run=*/8);
  err_.str("");
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), "state/server-1: a checkpoint of another run\n");
  EXPECT_FALSE(std::ifstream(file).is_open());
}

TEST_F(CheckpointCommandTest, AServerWithoutShardsNeedsNoCheckpoint) {
  partition_ = Partition::Make({{"w", {10}}}, 4096, kServers).value();
  Write(0, 5);
  ASSERT_TRUE(partition_.ShardsOf(ServerId{1}).empty());
  EXPECT_EQ(PrintCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_EQ(InspectCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  EXPECT_EQ(VerifyCheckpoints(files_, "state", out_, err_), ExitCode::kOk);
  const std::string file = testing::TempDir() + "/small.safetensors";
  EXPECT_EQ(ExportCheckpoint(files_, "state", file, {}, out_, err_), ExitCode::kOk);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CheckpointCommandTest, AFolderWithoutServersIsRefused) {
  EXPECT_EQ(PrintCheckpoints(files_, "nowhere", out_, err_), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("nowhere"));
  ASSERT_TRUE(files_.MakeFolder("empty").ok());
  err_.str("");
  EXPECT_EQ(VerifyCheckpoints(files_, "empty", out_, err_), ExitCode::kConfig);
  EXPECT_EQ(err_.str(), "empty: no state directory (expected server-0)\n");
}

// The variables of an operator's shell, as in docs/two_machines.md.
class CheckpointEnvironmentTest : public testing::Test {
 protected:
  CheckpointEnvironmentTest() {
    setenv("THINWIRE_ADDRESSES", "127.0.0.1:1", /*replace=*/1);
    setenv("THINWIRE_CREDENTIALS", "shell", /*replace=*/1);
  }
  ~CheckpointEnvironmentTest() override {
    unsetenv("THINWIRE_ADDRESSES");
    unsetenv("THINWIRE_CREDENTIALS");
  }

  // Runs a command line. Returns its exit code.
  ExitCode Run(const std::string& line) {
    Program program("");
    AddCheckpoint(program.app(), command_);
    std::vector<std::string> words = absl::StrSplit("thinwire checkpoint " + line, ' ');
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    EXPECT_EQ(program.Parse(static_cast<int>(pointers.size()), pointers.data()), std::nullopt);
    return RunCheckpoint(command_, out_, err_);
  }

  CheckpointCommand command_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CheckpointEnvironmentTest, FlagsWinOverTheEnvironment) {
  EXPECT_EQ(Run("now --credentials mine"), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("mine/"));
  EXPECT_EQ(command_.now_calls.servers.addresses, "127.0.0.1:1");
}

TEST_F(CheckpointEnvironmentTest, AStateDirectoryIsNotThatOfTheJobOfTheEnvironment) {
  EXPECT_EQ(Run("restore nowhere --step 4"), ExitCode::kConfig);
  EXPECT_THAT(err_.str(), HasSubstr("nowhere"));
}

TEST_F(CheckpointEnvironmentTest, AStateDirectoryAndAddressesOnOneCommandLineAreRefused) {
  EXPECT_EQ(Run("restore nowhere --step 4 --addresses 127.0.0.1:1"), ExitCode::kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("got both"));
}

}  // namespace
}  // namespace thinwire
