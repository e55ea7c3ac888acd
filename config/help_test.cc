#include "config/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"
#include "config/field_flags.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HelpTest, TextIsWrappedAtSpaces) {
  EXPECT_EQ(Wrapped("one two  three", 2, 9), "  one two\n  three\n");
  EXPECT_EQ(Wrapped("one two", 0, 7), "one two\n");
  EXPECT_EQ(Wrapped("a longlongword b", 1, 6), " a\n longlongword\n b\n");
  EXPECT_EQ(Wrapped("", 2, 9), "");
}

TEST(HelpTest, EveryLineFitsTheTerminal) {
  for (size_t columns : {60, 80, 200}) {
    CLI::App app("A program with many flags, whose description is longer than one line is.");
    SetHelpFormat(app, columns);
    const FieldFlags flags(app);
    app.footer("Exit codes: 0 done, 64 usage, 69 a server is not available, 78 configuration.");
    size_t longest = 0;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(app.help(), '\n'))) {
      longest = std::max(longest, line.size());
    }
    EXPECT_LE(longest, columns);
    EXPECT_GT(longest, columns - 20);
  }
}

TEST(HelpTest, FlagsAreGroupedAndTheEnvironmentIsNamedOnce) {
  CLI::App app;
  SetHelpFormat(app, 80);
  const FieldFlags flags(app);
  app.footer("Examples:\n  program --servers 2");
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("\nJob:\n  --name TEXT\n      The name of the job"));
  EXPECT_THAT(help, HasSubstr("\nCompression:\n  --push NAME\n      "));
  EXPECT_THAT(help, HasSubstr("such as THINWIRE_NAME for --name."));
  EXPECT_THAT(help, Not(HasSubstr("THINWIRE_PUSH")));
  EXPECT_THAT(help, testing::EndsWith("\nExamples:\n  program --servers 2\n"));
}

TEST(HelpTest, SubcommandsHaveTheFormatToo) {
  CLI::App app("A program.", "program");
  SetHelpFormat(app, 40);
  CLI::App* sub = app.add_subcommand("sub", "Does something that takes some words to describe");
  int number = 0;
  sub->add_option("--number", number, "A number")->type_name("COUNT")->required();
  EXPECT_THAT(app.help(), HasSubstr("  sub\n      Does something that takes some\n      words"));
  EXPECT_THAT(sub->help(), HasSubstr("  --number COUNT (required)\n      A number\n"));
}

TEST(HelpTest, AFileThatIsNotATerminalHas80Columns) { EXPECT_EQ(TerminalColumns(-1), 80u); }

}  // namespace
}  // namespace thinwire
