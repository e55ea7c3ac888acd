#include "cli/launch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

const ScriptLauncher kLauncher = {
    .self = "/nowhere/thinwire", .python = "python3", .python_path = "/mine"};

TEST(LaunchScriptTest, AWordThatEndsInPyIsTheScript) {
  EXPECT_TRUE(LaunchesScript(Words{"launch", "train.py"}));
  EXPECT_TRUE(LaunchesScript(Words{"launch", "--workers", "4", "--mode=async", "a/b.py", "x"}));
  EXPECT_TRUE(LaunchesScript(Words{"launch", "--hosts", "hosts.txt", "train.py"}));
  EXPECT_FALSE(LaunchesScript(Words{}));
  EXPECT_FALSE(LaunchesScript(Words{"launch"}));
  EXPECT_FALSE(LaunchesScript(Words{"train", "train.py"}));
  EXPECT_FALSE(LaunchesScript(Words{"launch", "--hosts", "hosts.txt", "--output=model.py"}));
  EXPECT_FALSE(LaunchesScript(Words{"launch", "--hosts", "hosts.txt", "--", "train.py"}));
}

TEST(LaunchScriptTest, ArgumentsOfTheScriptAreNoFlagsOfLaunch) {
  EXPECT_THAT(*ScriptCommand(kLauncher, Words{"launch", "--workers", "4", "train.py", "--hosts",
                                              "h", "--", "--push", "fp8_e5m2"}),
              ElementsAre("python3", "-m", "thinwire.launch", "--workers", "4", "train.py",
                          "--hosts", "h", "--", "--push", "fp8_e5m2"));
}

TEST(LaunchScriptTest, HostsAndAScriptAreRefused) {
  for (const Words& hosts : {Words{"--hosts", "hosts.txt"}, Words{"--hosts=hosts.txt"}}) {
    Words arguments = {"launch"};
    arguments.insert(arguments.end(), hosts.begin(), hosts.end());
    arguments.push_back("train.py");
    EXPECT_THAT(std::string(ScriptCommand(kLauncher, arguments).status().message()),
                HasSubstr("--hosts: not valid with a Python program (expected torchrun"));
  }
}

TEST(LaunchScriptTest, ThePackageOfABuildTreeComesFirst) {
  EXPECT_EQ(ScriptPath(kLauncher), "/mine");
  const std::unique_ptr<TempDir> dir = TempDir::Make(testing::TempDir()).value();
  std::filesystem::create_directories(dir->PathOf("cli"));
  std::filesystem::create_directories(dir->PathOf("python/thinwire"));
  ASSERT_TRUE(dir->WriteFile("cli/thinwire", "").ok());
  ScriptLauncher launcher = {.self = dir->PathOf("cli/thinwire"), .python = "", .python_path = ""};
  EXPECT_EQ(ScriptPath(launcher), "");
  ASSERT_TRUE(dir->WriteFile("python/thinwire/launch.py", "").ok());
  const std::string package = std::filesystem::canonical(dir->PathOf("python")).string();
  EXPECT_EQ(ScriptPath(launcher), package);
  launcher.python_path = "/mine";
  EXPECT_EQ(ScriptPath(launcher), package + ":/mine");
}

TEST(LaunchScriptTest, AMissingPythonIsNamed) {
  const ScriptLauncher launcher = {.self = "", .python = "/nowhere/python3", .python_path = ""};
  EXPECT_EQ(
      LaunchScript(launcher, Words{"launch", "train.py"}).message(),
      "/nowhere/python3: cannot be started (expected Python, or its path in THINWIRE_PYTHON): "
      "No such file or directory");
}

}  // namespace
}  // namespace thinwire
