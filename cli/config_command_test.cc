#include "cli/config_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace thinwire {
namespace {

using testing::HasSubstr;

std::string File(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(ConfigCommandTest, TheKindIsGuessedByTheFields) {
  EXPECT_EQ(GuessConfigKind(""), ConfigKind::kTrain);
  EXPECT_EQ(GuessConfigKind("servers: 2 consistency {} task {}"), ConfigKind::kTrain);
  EXPECT_EQ(GuessConfigKind("servers: 2 listen: 'x:1' optimization {}"), ConfigKind::kServer);
  EXPECT_EQ(GuessConfigKind("servers: 'x:1' task {} worker: 1"), ConfigKind::kWorker);
}

TEST(ConfigCommandTest, GoodFilesAreOkAndBadOnesTellWhy) {
  const std::string good = File("good", "servers: 2\n");
  const std::string bad = File("bad", "servers: 0\nreprot: 'x'\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({good, bad}, std::nullopt, out, err), ExitCode::kConfig);
  EXPECT_EQ(out.str(), good + ": ok\n");
  EXPECT_THAT(err.str(), HasSubstr(bad + ":1:1: field \"servers\": want at least 1, got 0\n"));
  EXPECT_THAT(err.str(),
              HasSubstr(bad + ":2:1: field \"reprot\" is unknown; did you mean \"report\"?\n"));
}

TEST(ConfigCommandTest, AFileIsTakenForWhatItIsSaidToBe) {
  const std::string file = File("worker", "servers: 2\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({file}, ConfigKind::kWorker, out, err), ExitCode::kConfig);
  EXPECT_THAT(err.str(), HasSubstr("field \"servers\": want a text in quotes, got 2"));
}

TEST(ConfigCommandTest, AMissingFileIsAnError) {
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({"/nowhere"}, std::nullopt, out, err), ExitCode::kConfig);
  EXPECT_THAT(err.str(), HasSubstr("/nowhere: cannot be read"));
}

}  // namespace
}  // namespace thinwire
