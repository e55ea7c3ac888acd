#include "config/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

#include "config/field_flags.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr absl::Time kDate = absl::UnixEpoch();

TEST(ManPageTest, APageHasTheFlagsTheEnvironmentTheExamplesAndTheExitCodes) {
  CLI::App app("thinwire thing: does something.", "thing");
  const FieldFlags flags(app, {"slack", "mode"});
  app.footer("Examples:\n  thing --slack 2\n  thing --mode ssp\nA sentence.\nExit codes: 0 good.");
  const std::string page = ManPage(app, "thinwire-thing", kDate);
  EXPECT_THAT(page, StartsWith(".TH THINWIRE\\-THING 1 1970-01-01 thinwire \"User Commands\"\n"
                               ".SH NAME\nthinwire\\-thing \\- does something\n"
                               ".SH SYNOPSIS\n.B thinwire\\-thing\n[\\fIflags\\fR]\n"));
  EXPECT_THAT(page, HasSubstr("\n.SS Consistency\n.TP\n"
                              "\\fB\\-\\-mode\\fR \\fIsync|backup|ssp|async\\fR\n"));
  EXPECT_THAT(page, HasSubstr("such as THINWIRE_MODE for \\-\\-mode. A flag"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n0 good.\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLES\n.nf\nthing \\-\\-slack 2\nthing \\-\\-mode ssp\n.fi\n"
                              ".PP\nA sentence.\n"));
  EXPECT_THAT(page, HasSubstr(".SH SEE ALSO\n.BR thinwire (1)\n"));
}

TEST(ManPageTest, ACommandHasItsOwnPageWithItsCommands) {
  CLI::App app("thinwire: trains.", "thinwire");
  app.footer("Exit codes: 0 good.");
  CLI::App* config = app.add_subcommand("config", "Shows files");
  CLI::App* check = config->add_subcommand("check", "Checks files");
  std::string file;
  check->add_option("FILE", file, "A file")->required();
  const std::string page = ManPage(*config, "thinwire", kDate);
  EXPECT_THAT(page, HasSubstr("\nthinwire\\-config \\- Shows files\n"));
  EXPECT_THAT(page, HasSubstr(".SS check\nChecks files\n.PP\n.B thinwire config check\n"
                              "[\\fIflags\\fR]\n\\fIFILE\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n0 good.\n"));
  EXPECT_THAT(page, Not(HasSubstr("EXAMPLES")));
  EXPECT_THAT(ManPage(app, "thinwire", kDate),
              HasSubstr(".SH SEE ALSO\n.BR thinwire\\-config (1)\n"));
}

TEST(ManPageTest, TextIsNeverARequest) {
  CLI::App app(".SH \\fBold", "thing");
  EXPECT_THAT(ManPage(app, "thing", kDate), HasSubstr("\\- \\&.SH \\efBold\n"));
}

TEST(ManPageTest, TheFlagPrintsThePageWithoutTheRequiredFlags) {
  CLI::App app("Does something.", "thing");
  std::string value;
  app.add_option("--needed", value, "A value")->required();
  AddManFlag(app, "thing");
  try {
    app.parse("--man");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    EXPECT_EQ(app.exit(error, out, out), 0);
    EXPECT_THAT(out.str(), StartsWith(".TH THING 1 "));
  }
}

}  // namespace
}  // namespace thinwire
