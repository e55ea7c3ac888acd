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

TEST(ConfigCommandTest, AGoodFileIsOkAndABadOneIsReported) {
  const std::string good = File("good", "servers: 2\n");
  const std::string bad = File("bad", "servers: 0 silence_seconds: -1\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({good, bad}, "", out, err), ExitCode::kConfig);
  EXPECT_EQ(out.str(), good + ": ok\n");
  EXPECT_EQ(err.str(), bad + ":1:1: servers: out of range (expected 1 to 4096, got 0)\n" + bad +
                           ":1:12: silence_seconds: out of range (expected above 0 and at most a "
                           "year of seconds, got -1)\n");
}

TEST(ConfigCommandTest, ARecipeIsShownWithItsSettings) {
  const std::string file = File("recipe", "compression { recipe: sparse density: 0.5 pull: fp16 }");
  std::ostringstream out, err, shown;
  EXPECT_EQ(CheckConfigFiles({file}, "", out, err), ExitCode::kOk);
  EXPECT_THAT(out.str(), HasSubstr(file + ": recipe: sparse: lazy_slots true, push topk, "
                                          "topk_values fp8_e5m2, "));
  EXPECT_EQ(ShowConfigFile(file, shown, err), ExitCode::kOk);
  EXPECT_THAT(shown.str(), HasSubstr("push: topk\n"));
  EXPECT_THAT(shown.str(), HasSubstr("density: 0.5\n"));
  EXPECT_THAT(shown.str(), HasSubstr("pull: fp16\n"));
  EXPECT_THAT(shown.str(), testing::Not(HasSubstr("recipe")));
}

TEST(ConfigCommandTest, AStalenessPolicyThatCannotWorkIsReported) {
  const std::string sync = File("sync", "consistency { staleness_policy: scale }");
  const std::string drop = File("drop", "consistency { mode: async staleness_policy: drop }");
  const std::string whole = File("whole", "consistency { mode: async staleness_policy: dcasgd }");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({sync, drop, whole}, "", out, err), ExitCode::kConfig);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(),
            sync +
                ":1:15: staleness_policy: only valid with mode: ssp or async (got mode: sync)\n" +
                drop +
                ":1:27: staleness_policy: drop requires a staleness_bound (expected at least 1, "
                "got 0)\n" +
                whole +
                ":1:27: staleness_policy: dcasgd is only valid with pull: delta or delta_CODEC "
                "(got pull: fp32)\n");
}

TEST(ConfigCommandTest, AFieldOfOneProcessIsUnknown) {
  const std::string file = File("server", "servers: 2\nlisten: \"127.0.0.1:7000\"\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({file}, "", out, err), ExitCode::kConfig);
  EXPECT_EQ(err.str(), file + ":2:1: listen: unknown field\n");
}

TEST(ConfigCommandTest, WarningsAndFilesThatThisMachineLacksAreShown) {
  const std::string file = File("warned",
                                "compression { pull: delta }\n"
                                "task { model: torchscript model_file: '/nowhere.pt'\n"
                                "  data_dir: '/nowhere' }\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({file}, "", out, err), ExitCode::kOk);
  EXPECT_EQ(out.str(), file + ": ok\n");
  EXPECT_THAT(err.str(), HasSubstr("warning: " + file + ":1:15: pull: saves few bytes"));
  EXPECT_THAT(err.str(), HasSubstr("warning: " + file + ":2:27: model_file: no such file"));
  EXPECT_THAT(err.str(), HasSubstr("warning: " + file + ":3:3: data_dir: no such folder"));
}

TEST(ConfigCommandTest, AMissingFileIsAnError) {
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({"/nowhere"}, "", out, err), ExitCode::kConfig);
  EXPECT_THAT(err.str(), HasSubstr("/nowhere: cannot be read"));
}

TEST(ConfigCommandTest, ShowPrintsTheDefaultsToo) {
  std::ostringstream out, err;
  EXPECT_EQ(ShowConfigFile(File("shown", "compression { push: topk }"), out, err), ExitCode::kOk);
  EXPECT_THAT(out.str(), HasSubstr("servers: 1\n"));
  EXPECT_THAT(out.str(), HasSubstr("  push: topk\n"));
  EXPECT_THAT(out.str(), HasSubstr("  density: 0.01\n"));
  EXPECT_EQ(err.str(), "");
}

TEST(ConfigCommandTest, ShowRefusesAnInvalidFile) {
  std::ostringstream out, err;
  EXPECT_EQ(ShowConfigFile(File("refused", "servers: 0"), out, err), ExitCode::kConfig);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), HasSubstr("servers: out of range"));
}

TEST(ConfigCommandTest, AStateDirThatCannotBeMeasuredIsAnError) {
  const std::string file = File("log", "recovery { durability: log }\n");
  std::ostringstream out, err;
  EXPECT_EQ(CheckConfigFiles({file}, testing::TempDir(), out, err), ExitCode::kOk) << err.str();
  EXPECT_EQ(CheckConfigFiles({file}, "/nowhere/state", out, err), ExitCode::kConfig);
  EXPECT_THAT(err.str(), HasSubstr("--state_dir: /nowhere/"));
}

}  // namespace
}  // namespace thinwire
