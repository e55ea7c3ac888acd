#include "cli/launch/launch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

const ScriptLauncher kLauncher = {
    .self = "/nowhere/thinwire", .python = "python3", .python_path = "/mine"};

TEST(LaunchScriptTest, AWordThatEndsInPyIsTheScript) {
  EXPECT_EQ(FindScript(Words{"launch", "train.py"}), 1);
  EXPECT_EQ(FindScript(Words{"launch", "--workers", "4", "--mode=async", "a/b.py", "x"}), 4);
  EXPECT_EQ(FindScript(Words{"launch", "--hosts", "hosts.txt", "train.py", "more.py"}), 3);
  EXPECT_EQ(FindScript(Words{}), std::nullopt);
  EXPECT_EQ(FindScript(Words{"launch"}), std::nullopt);
  EXPECT_EQ(FindScript(Words{"train", "train.py"}), std::nullopt);
  EXPECT_EQ(FindScript(Words{"launch", "--hosts", "hosts.txt", "--output=model.py"}), std::nullopt);
  EXPECT_EQ(FindScript(Words{"launch", "--hosts", "hosts.txt", "--", "train.py"}), std::nullopt);
}

TEST(LaunchScriptTest, ArgumentsOfTheScriptAreNoFlagsOfLaunch) {
  EXPECT_THAT(ScriptCommand(kLauncher, Words{"launch", "--workers", "4", "train.py", "--hosts", "h",
                                             "--", "--push", "fp8_e5m2"}),
              ElementsAre("python3", "-m", "thinwire.launch", "--workers", "4", "train.py",
                          "--hosts", "h", "--", "--push", "fp8_e5m2"));
}

TEST(LaunchScriptTest, HostsAreRecognizedInBothForms) {
  EXPECT_TRUE(HasHosts(Words{"launch", "--insecure", "--hosts", "hosts.txt"}));
  EXPECT_TRUE(HasHosts(Words{"launch", "--hosts=hosts.txt"}));
  EXPECT_FALSE(HasHosts(Words{"launch", "--workers", "4"}));
}

TEST(LaunchScriptTest, AMissingPackageIsNamed) {
  const std::unique_ptr<TempDir> dir = TempDir::Make(testing::TempDir()).value();
  std::filesystem::create_directories(dir->PathOf("bin"));
  ASSERT_TRUE(dir->WriteFile("bin/thinwire", "").ok());
  const auto package = PackageFolder(dir->PathOf("bin/thinwire"));
  EXPECT_THAT(std::string(package.status().message()),
              HasSubstr("--copy: no Python package (expected "));
  ASSERT_TRUE(dir->WriteFile("launch.py", "").ok()) << "the layout of a wheel";
  EXPECT_EQ(*PackageFolder(dir->PathOf("bin/thinwire")),
            std::filesystem::canonical(dir->path()).string());
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
