#include "cli/mode_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class ModeCommandTest : public testing::Test {
 protected:
  ExitCode Run(ModeCommand command) {
    Console console(messages_, {});
    command.servers.addresses = lead_.address();
    return RunMode(command, console, out_);
  }

  FakeControlServer lead_{"tensor", "aaaa"};
  std::ostringstream out_, messages_;
};

TEST_F(ModeCommandTest, TheLeadGetsTheNewMode) {
  EXPECT_EQ(Run({.mode = "ssp", .slack = 3, .fold_every = 2}), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(out_.str(), "mode sync -> ssp from step 40 on\n");
  EXPECT_EQ(lead_.mode->mode(), Consistency::Mode::ssp);
  EXPECT_EQ(lead_.mode->slack(), 3u);
  EXPECT_EQ(lead_.mode->fold_every(), 2u);
  EXPECT_EQ(Run({.mode = "backup", .backup = 1}), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(lead_.mode->mode(), Consistency::Mode::backup);
  EXPECT_EQ(lead_.mode->backup(), 1u);
}

TEST_F(ModeCommandTest, AFlagThatDoesNotFitTheModeIsAnErrorOfUsage) {
  const std::pair<ModeCommand, const char*> cases[] = {
      {{.mode = "sync", .backup = 1}, "--backup: has no effect with --set sync"},
      {{.mode = "async", .slack = 1}, "--slack: has no effect with --set async"},
      {{.mode = "backup", .backup = 1, .fold_every = 2},
       "--fold_every: has no effect with --set backup"},
      {{.mode = "backup"}, "--backup: missing (expected with --set backup)"},
      {{.mode = "ssp"}, "--slack: missing (expected with --set ssp)"},
  };
  for (const auto& [command, message] : cases) {
    messages_.str("");
    EXPECT_EQ(Run(command), ExitCode::kUsage);
    EXPECT_THAT(messages_.str(), HasSubstr(message));
  }
  EXPECT_FALSE(lead_.mode.has_value());
}

TEST_F(ModeCommandTest, ARefusalIsAnErrorOfTheConfiguration) {
  EXPECT_EQ(Run({.mode = "backup", .backup = 99}), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("server 0 (" + lead_.address() + "): backup: must be"));
}

TEST_F(ModeCommandTest, AModeThatMayDivergeNeedsForceAndWarns) {
  EXPECT_EQ(Run({.mode = "async"}), ExitCode::kConfig);
  EXPECT_FALSE(lead_.mode.has_value());
  EXPECT_EQ(Run({.mode = "async", .force = true}), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(messages_.str(), HasSubstr("warning: momentum: may diverge\n"));
  EXPECT_EQ(lead_.mode->mode(), Consistency::Mode::async);
}

TEST_F(ModeCommandTest, AnUnreachableLeadIsNamed) {
  lead_.Stop();
  EXPECT_EQ(Run({.mode = "sync"}), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("server 0 (" + lead_.address() + "): "));
}

}  // namespace
}  // namespace thinwire
