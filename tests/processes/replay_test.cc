// Records an asynchronous run of real servers and workers, and replays it in the laboratory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
  servers: 2
  consistency { mode: async workers: 3 }
  optimization { optimizer: momentum learning_rate: 0.01 }
  compression { push: topk density: 0.05 topk_values: fp8_e5m2 pull: bf16 }
  task { model: softmax train_examples: 1500 test_examples: 500 batch_size: 50 epochs: 2 seed: 7 }
  recovery { durability: log keep_log: true checkpoint_seconds: 1 }
)";

// Returns the column NAME of a table's rows.
std::vector<std::string> Column(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = absl::StrSplit(line, ',');
  const auto column = std::ranges::find(names, name) - names.begin();
  std::vector<std::string> cells;
  while (std::getline(file, line)) {
    cells.push_back(std::vector<std::string>(absl::StrSplit(line, ',')).at(column));
  }
  return cells;
}

TEST(ReplayProcessesTest, RunOfRealProcessesReplaysBitForBit) {
  Daemons daemons;
  const std::string state = daemons.folder() + "/state";
  const std::string report = daemons.folder() + "/report.json";
  const ProcessResult run =
      daemons.Run("cli/thinwire", {"train", "--config", daemons.Write("job.textproto", kConfig),
                                   "--state_dir", state, "--report", report});
  ASSERT_EQ(run.exit, ExitStatus()) << run.log << run.output;
  std::ifstream file(report);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object());
  const std::string crc = absl::StrFormat("%08x", json["final_parameters_crc32c"].get<uint32_t>());
  size_t replays = 0;
  for (const bool payloads : {false, true}) {
    const std::string out = absl::StrCat(daemons.folder(), "/out", payloads);
    std::vector<std::string> arguments = {"replay",    state, "--out", out,
                                          "--threads", "2",   "--set", "learning_rate=0.02"};
    if (payloads) arguments.push_back("--payloads");
    const ProcessResult replay = daemons.Run("experiments/laboratory", arguments);
    ASSERT_EQ(replay.exit, ExitStatus()) << replay.log;
    const std::vector<std::string> checksums = Column(out + "/runs.csv", "parameters_crc");
    ASSERT_EQ(checksums.size(), 2u);
    EXPECT_EQ(checksums[0], crc);
    EXPECT_NE(checksums[1], crc);
    ++replays;
  }
  EXPECT_EQ(replays, 2u);
}

TEST(ReplayProcessesTest, MissingStateDirectoryIsNamed) {
  Daemons daemons;
  const ProcessResult run =
      daemons.Run("experiments/laboratory", {"replay", daemons.folder() + "/none"});
  EXPECT_EQ(run.exit.code, 78);
  EXPECT_THAT(run.log, HasSubstr("/none/server-0"));
}

}  // namespace
}  // namespace thinwire
