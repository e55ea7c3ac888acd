#include "config/command_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_code.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Parses WORDS. Returns the error, or "".
std::string Parse(CLI::App& app, std::vector<std::string> words) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(CommandFlagsTest, FlagsAndArgumentsSetTheirValues) {
  CLI::App app;
  CommandFlags flags(app);
  std::string text;
  int number = 0;
  uint32_t small = 0;
  uint64_t large = 0;
  std::optional<uint32_t> given, absent;
  std::optional<uint64_t> many;
  bool on = false, off = false;
  std::vector<std::string> files;
  flags.Add("--text", text, "");
  flags.Add("--number", number, "");
  flags.Add("--small", small, "");
  flags.Add("--large", large, "").Bytes();
  flags.Add("--given", given, "");
  flags.Add("--absent", absent, "");
  flags.Add("--many", many, "");
  flags.AddSwitch("--on", on, "");
  flags.AddSwitch("--off", off, "");
  flags.Add("FILE", files, "");
  EXPECT_EQ(Parse(app, {"--text", "a b", "--number", "-3", "--small", "4", "--large", "8KB",
                        "--given", "0", "--many", "5000000000", "--on", "x", "y"}),
            "");
  EXPECT_EQ(text, "a b");
  EXPECT_EQ(number, -3);
  EXPECT_EQ(small, 4);
  EXPECT_EQ(large, 8192);
  EXPECT_EQ(given, 0);
  EXPECT_EQ(absent, std::nullopt);
  EXPECT_EQ(many, 5000000000);
  EXPECT_TRUE(on);
  EXPECT_FALSE(off);
  EXPECT_THAT(files, ElementsAre("x", "y"));
}

TEST(CommandFlagsTest, RestrictionsAreChecked) {
  CLI::App app;
  CommandFlags flags(app);
  std::string keep, output, other;
  int days = 0;
  double timeout = 0;
  const Flag file = flags.Add("--output", output, "");
  flags.Add("--keep", keep, "").OneOf({"last", "best"}).Needs(file);
  flags.Add("--days", days, "").Between(1, 9);
  flags.Add("--timeout", timeout, "").Between(0.5, 9.5);
  flags.Add("--other", other, "").Excludes(file);
  EXPECT_EQ(Parse(app, {"--output", "f", "--keep", "best", "--days", "9"}), "");
  EXPECT_EQ(Parse(app, {"--keep", "best"}), "--keep requires --output");
  EXPECT_EQ(Parse(app, {"--output", "f", "--keep", "first"}), "--keep: first not in {last,best}");
  EXPECT_EQ(Parse(app, {"--days", "10"}), "--days: Value 10 not in range 1 to 9");
  EXPECT_EQ(Parse(app, {"--output", "f", "--other", "g"}), "--output excludes --other");
  EXPECT_EQ(Parse(app, {"--timeout", "2.5"}), "");
  EXPECT_EQ(timeout, 2.5);
  EXPECT_EQ(Parse(app, {"--timeout", "0.25"}),
            "--timeout: Value 0.25 not in range 0.500000 to 9.500000");
  flags.Get("--days").Required();
  EXPECT_EQ(Parse(app, {}), "--days is required");
}

TEST(CommandFlagsTest, SubcommandsAreParsed) {
  CLI::App app;
  CommandFlags flags(app);
  flags.RequireSubcommand();
  CLI::App* show = flags.AddSubcommand("show", "Shows files");
  CLI::App* check = flags.AddSubcommand("check", "Checks files");
  EXPECT_EQ(Parse(app, {"check"}), "");
  EXPECT_TRUE(IsParsed(*check));
  EXPECT_FALSE(IsParsed(*show));
  EXPECT_EQ(Parse(app, {}), "A subcommand is required");
}

TEST(CommandFlagsTest, AValueOfTheEnvironmentIsNotOnTheCommandLine) {
  CLI::App app;
  CommandFlags flags(app);
  std::string from;
  flags.Add("--from", from, "").Environment("COMMAND_FLAGS_TEST_FROM");
  setenv("COMMAND_FLAGS_TEST_FROM", "a", /*replace=*/1);
  EXPECT_EQ(Parse(app, {}), "");
  EXPECT_EQ(from, "a");
  EXPECT_FALSE(IsOnCommandLine(app, "--from"));
  EXPECT_EQ(Parse(app, {"--from", "b"}), "");
  EXPECT_EQ(from, "b");
  EXPECT_TRUE(IsOnCommandLine(app, "--from"));
  unsetenv("COMMAND_FLAGS_TEST_FROM");
}

TEST(CommandFlagsTest, TheHelpShowsTypesGroupsVariablesAndTheFooter) {
  CLI::App app("Copies files.", "copy");
  CommandFlags flags(app);
  std::string from;
  flags.Add("--from", from, "The source")
      .Type("FILE")
      .Environment("COPY_FROM")
      .Group("Files")
      .Description("The file to read");
  flags.Footer("Examples: none");
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("Files:\n  --from FILE (Env:COPY_FROM)"));
  EXPECT_THAT(help, HasSubstr("The file to read\n"));
  EXPECT_THAT(help, HasSubstr("Examples: none\n"));
}

// Returns the result of Program::Parse for a program with the flags --address and --version.
std::optional<int> ParseProgram(std::vector<std::string> words) {
  Program program("A program.");
  CommandFlags flags(program.app());
  std::string address;
  flags.Add("--address", address, "");
  flags.AddVersion("version 7");
  words.insert(words.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return program.Parse(static_cast<int>(pointers.size()), pointers.data(),
                       [&] { return address == "none" ? "--other" : ""; });
}

TEST(ProgramTest, AGoodCommandLineLetsTheProgramGoOn) {
  EXPECT_EQ(ParseProgram({"--address", "a"}), std::nullopt);
}

TEST(ProgramTest, HelpAndVersionEndTheProgramWithoutAnError) {
  EXPECT_EQ(ParseProgram({"--help"}), 0);
  EXPECT_EQ(ParseProgram({"--version"}), 0);
}

TEST(ProgramTest, ErrorsAndMissingFlagsAreErrorsOfUse) {
  EXPECT_EQ(ParseProgram({"--addres", "a"}), static_cast<int>(ExitCode::kUsage));
  EXPECT_EQ(ParseProgram({"--address", "none"}), static_cast<int>(ExitCode::kUsage));
}

TEST(ProgramTest, AnUnknownFlagIsAnsweredWithTheLikelyOne) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ParseProgram({"--addres", "a"}), static_cast<int>(ExitCode::kUsage));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "program: --addres: unknown flag (did you mean --address?)\n");
}

}  // namespace
}  // namespace thinwire
